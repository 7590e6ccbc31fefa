-- The SFUs of the index; an id whose record has expired leaves the index.
-- KEYS: index, then a record and its stamps for each id. ARGV: the ids.
-- Returns id, JSON, incarnation, started_at, cordoned_at and the seconds since it had news (or empty) for each one that is
-- there.
local answer, now = {}, tonumber(now_at())
for i, id in ipairs(ARGV) do
  local json = redis.pcall('GET', KEYS[2 * i])
  if json then
    if type(json) == 'table' then json = '' end
    local stamps = redis.pcall('HMGET', KEYS[2 * i + 1], 'incarnation', 'started_at', 'cordoned_at', 'heard_at')
    if stamps.err then stamps = {} end
    local heard = tonumber(stamps[4] or '')
    local silent = heard and string.format('%.3f', math.max(0, now - heard)) or ''
    for _, value in ipairs({ id, json, stamps[1] or '', stamps[2] or '', stamps[3] or '', silent }) do
      table.insert(answer, value)
    end
  else
    redis.call('SREM', KEYS[1], id)
  end
end
return answer
