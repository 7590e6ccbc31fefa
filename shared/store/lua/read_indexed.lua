-- The records of an index; an id whose record has expired leaves the index.
-- KEYS: index, then a record for each id. ARGV: the ids. Returns id, JSON, what is left of its lifetime [ms] for each one
-- that is there.
local answer = {}
for i, id in ipairs(ARGV) do
  local json = redis.pcall('GET', KEYS[i + 1])
  if json then
    table.insert(answer, id)
    table.insert(answer, type(json) == 'table' and '' or json)
    table.insert(answer, redis.call('PTTL', KEYS[i + 1]))
  else
    redis.call('SREM', KEYS[1], id)
  end
end
return answer
