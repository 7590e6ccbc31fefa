-- Orders and this server's clock, by which the caller leaves out those that are over.
-- KEYS: hash. ARGV: the fields, or none for all. Returns the time, then the orders' JSON.
local answer = { now_at() }
if #ARGV == 0 then
  for _, order in ipairs(redis.call('HVALS', KEYS[1])) do table.insert(answer, order) end
else
  for _, field in ipairs(ARGV) do
    local order = redis.call('HGET', KEYS[1], field)
    if order then table.insert(answer, order) end
  end
end
return answer
