--include _room
-- Renews the leases of players that are there, even of those whose lease has just run out.
-- ARGV: room TTL [ms], lease [ms], players. Returns the players that are not there.
local missing = {}
local ends = text(now_ms() + tonumber(ARGV[2]))
for i = 3, #ARGV do
  if redis.call('HEXISTS', room, 'p:' .. ARGV[i]) == 1 then
    redis.call('ZADD', leases, ends, 'p:' .. ARGV[i])
  else
    table.insert(missing, ARGV[i])
  end
end
keep()
return missing
