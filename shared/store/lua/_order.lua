-- Writes an operator's order into a hash, dated by this server's clock and never earlier than the last one in its
-- field; orders that are over leave the hash. Returns the order's JSON.
local function write_order(key, field, json, ttl_s)
  local at, oldest = now_at(), tonumber(redis.call('TIME')[1]) - tonumber(ttl_s)
  local flat = redis.call('HGETALL', key)
  for i = 1, #flat, 2 do
    local given_at = tonumber((fields_of(flat[i + 1]) or {}).at)
    if not given_at or given_at < oldest then
      redis.call('HDEL', key, flat[i])
    elseif flat[i] == field and given_at > tonumber(at) then
      at = string.format('%.6f', given_at)
    end
  end
  local order = with_number(json, 'at', at)
  redis.call('HSET', key, field, order)
  redis.call('EXPIRE', key, ttl_s)
  return order
end
