-- SFUs whose connections fail for many. KEYS: hash. Returns SFU, incarnation, time left [ms] for each; those that are
-- over, can't be read, or end later than any pause could, go.
local LONGEST_MS = 3600 * 1000 -- the most that a router takes for `failure_pause_s`
local answer, now, flat = {}, now_ms(), redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
  local incarnation, until_ms = string.match(flat[i + 1], '^(%d+) (%d+)$')
  local left_ms = until_ms and #incarnation < 19 and tonumber(until_ms) - now or 0
  if left_ms > 0 and left_ms <= LONGEST_MS then
    table.insert(answer, flat[i])
    table.insert(answer, incarnation)
    table.insert(answer, text(left_ms))
  else
    redis.call('HDEL', KEYS[1], flat[i])
  end
end
return answer
