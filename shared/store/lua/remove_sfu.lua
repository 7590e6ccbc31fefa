-- Unregisters an SFU unless a newer incarnation is there; a late write of the removed one is refused from then on.
-- KEYS: record, stamps, index. ARGV: id, incarnation, seconds to remember it. Returns 1, or 0 when refused.
local id, incarnation = ARGV[1], ARGV[2]
local known = redis.call('HGET', KEYS[2], 'incarnation')
known = known and string.match(known, '^%d+$') or '0'
if #known > #incarnation or (#known == #incarnation and known > incarnation) then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SREM', KEYS[3], id)
redis.call('DEL', KEYS[2])
-- An older program's SFU has no incarnation: nothing would tell its next start from this one.
if incarnation ~= '0' then
  redis.call('HSET', KEYS[2], 'incarnation', incarnation, 'removed', incarnation)
  redis.call('EXPIRE', KEYS[2], ARGV[3])
end
return 1
