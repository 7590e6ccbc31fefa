-- The newest fencing token as a number, 0 before the first; an error reply when the key holds something else. A number
-- near 2^53, from where Lua can't count on, is nothing that a clock in milliseconds has made.
local function newest_token(key)
  local token = redis.call('GET', key) or '0'
  if not string.match(token, '^%d+$') or tonumber(token) > 2 ^ 52 then
    return redis.error_reply('WRONGTYPE the fencing token is no number, or absurd')
  end
  return tonumber(token)
end
