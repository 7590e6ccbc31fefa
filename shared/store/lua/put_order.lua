-- Writes an operator's order, dated by this server's clock and never earlier than the last one in its field.
-- KEYS: hash. ARGV: field, the order as JSON without `at`, lifetime [s]. Returns the order's JSON.
local at, oldest = now_at(), tonumber(redis.call('TIME')[1]) - tonumber(ARGV[3])
local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
  local given_at = tonumber((fields_of(flat[i + 1]) or {}).at)
  if not given_at or given_at < oldest then
    redis.call('HDEL', KEYS[1], flat[i])
  elseif flat[i] == ARGV[1] and given_at > tonumber(at) then
    at = string.format('%.6f', given_at)
  end
end
local order = with_number(ARGV[2], 'at', at)
redis.call('HSET', KEYS[1], ARGV[1], order)
redis.call('EXPIRE', KEYS[1], ARGV[3])
return order
