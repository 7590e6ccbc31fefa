-- What there is to see of the autoscaler; a key of another type hides only itself.
-- KEYS: lease, state, audit. ARGV: how many records. Returns bad keys, controller, token, the lease's rest [ms], the
-- state's JSON, then the records' JSON, newest first.
local bad = 0
local function read(...)
  local answer = redis.pcall(...)
  if type(answer) ~= 'table' or not answer.err then return answer end
  bad = bad + 1
  return false
end
local holder = read('HMGET', KEYS[1], 'controller', 'token') or {}
local answer = { 0, holder[1] or '', holder[2] or '', redis.call('PTTL', KEYS[1]), read('GET', KEYS[2]) or '' }
if tonumber(ARGV[1]) > 0 then
  for _, record in ipairs(read('LRANGE', KEYS[3], 0, tonumber(ARGV[1]) - 1) or {}) do table.insert(answer, record) end
end
answer[1] = bad
return answer
