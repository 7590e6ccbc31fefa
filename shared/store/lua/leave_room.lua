--include _room
-- A player leaves with its publications. ARGV: room TTL [ms], player. Returns 1, or 0 when it was not there.
local player = ARGV[2]
if redis.call('HEXISTS', room, 'p:' .. player) == 0 and redis.call('HEXISTS', room, 'o:' .. player) == 0 then
  return 0
end
drop_player(player)
changed()
return 1
