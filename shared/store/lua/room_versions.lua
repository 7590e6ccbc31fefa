-- The versions of many rooms, after leases that ran out have ended. ARGV: room TTL [ms]. KEYS: for each room its hash
-- and its leases. Returns a version for each room, 0 for one that is not there or can't be read.
local function version_of(room_key, leases_key)
  local KEYS = { room_key, leases_key }
  --include _room
  --include _sweep
  sweep()
  return redis.call('HGET', room, 'version') or '0'
end
local all, answer = KEYS, {}
for i = 1, #all, 2 do
  local ok, version = pcall(version_of, all[i], all[i + 1])
  table.insert(answer, ok and version or '0')
end
return answer
