-- The SFUs of the index; an id whose record has expired leaves the index.
-- KEYS: index, then a record and its stamps for each id. ARGV: the ids.
-- Returns id, JSON, incarnation, started_at, cordoned_at for each one that is there.
local answer = {}
for i, id in ipairs(ARGV) do
  local json = redis.pcall('GET', KEYS[2 * i])
  if json then
    if type(json) == 'table' then json = '' end
    local stamps = redis.pcall('HMGET', KEYS[2 * i + 1], 'incarnation', 'started_at', 'cordoned_at')
    if stamps.err then stamps = {} end
    for _, value in ipairs({ id, json, stamps[1] or '', stamps[2] or '', stamps[3] or '' }) do
      table.insert(answer, value)
    end
  else
    redis.call('SREM', KEYS[1], id)
  end
end
return answer
