-- The newest fencing token as a number, 0 before the first; an error reply when the key holds something else.
local function newest_token(key)
  local token = redis.call('GET', key) or '0'
  if not string.match(token, '^%d+$') then
    return redis.error_reply('WRONGTYPE the fencing token is no number')
  end
  return tonumber(token)
end
