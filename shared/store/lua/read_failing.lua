-- SFUs whose connections fail for many. KEYS: hash. Returns SFU, incarnation, time left [ms] for each; those that are
-- over, or can't be read, go.
local answer, now, flat = {}, now_ms(), redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
  local incarnation, until_ms = string.match(flat[i + 1], '^(%d+) (%d+)$')
  if until_ms and #incarnation < 19 and tonumber(until_ms) > now then
    table.insert(answer, flat[i])
    table.insert(answer, incarnation)
    table.insert(answer, text(tonumber(until_ms) - now))
  else
    redis.call('HDEL', KEYS[1], flat[i])
  end
end
return answer
