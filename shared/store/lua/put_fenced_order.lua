-- Writes a controller's command for an SFU, under the newest fencing token only; a person's command that is younger
-- than the patience stands, for it may not have reached the SFU yet.
-- KEYS: token counter, hash. ARGV: token, SFU, the command as JSON without `at`, lifetime [s], the controller's `by`,
-- patience [s]. Returns 1 and the JSON, 0 and the newest token, or 2 and whose command stands.
--include _token
--include _order
local newest = newest_token(KEYS[1])
if type(newest) == 'table' then return newest end
if newest ~= tonumber(ARGV[1]) then return { 0, text(newest) } end
local standing = fields_of(redis.call('HGET', KEYS[2], ARGV[2])) or {}
local age_s = tonumber(now_at()) - (tonumber(standing.at) or 0)
if standing.by ~= ARGV[5] and age_s < tonumber(ARGV[6]) and age_s > -tonumber(ARGV[6]) then
  return { 2, tostring(standing.by or '') }
end
return { 1, write_order(KEYS[2], ARGV[2], ARGV[3], ARGV[4]) }
