-- Writes the autoscaler's state and its audit records in one step, under the newest fencing token only (invariant 9).
-- KEYS: token counter, state, audit. ARGV: token, state as JSON, how many records to keep, the records without id and
-- time, oldest first. Returns 1, or the newest token as text when it is another.
--include _token
local newest = newest_token(KEYS[1])
if type(newest) == 'table' then return newest end
if newest ~= tonumber(ARGV[1]) then return text(newest) end
redis.call('GET', KEYS[2]) -- another type of value fails here, before anything is written
local last = fields_of(redis.call('LINDEX', KEYS[3], 0)) or {}
-- Ids and times go on from the newest record, also over a clock that went back a little; from absurd ones nothing does.
local id, at = tonumber(last.id) or 0, now_at()
if id < 0 or id > 2 ^ 52 or id % 1 ~= 0 then id = 0 end
local ahead_s = (tonumber(last.at) or 0) - tonumber(at)
if ahead_s > 0 and ahead_s < 3600 then at = string.format('%.6f', last.at) end
redis.call('SET', KEYS[2], ARGV[2])
for i = 4, #ARGV do
  id = id + 1
  redis.call('LPUSH', KEYS[3], with_number(with_number(ARGV[i], 'id', text(id)), 'at', at))
end
redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[3]) - 1)
return 1
