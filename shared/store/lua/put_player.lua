--include _room
-- Writes a player and renews its lease, unless a newer session of its identity is known.
-- ARGV: room TTL [ms], lease [ms], player, identity, epoch, PlayerRecord as JSON. Returns 1, or 0 when refused.
local lease_ms, player, identity, epoch, json = tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local last, holder = newest_session(identity)
if last and holder ~= player then
  if last >= epoch then return 0 end
  drop_player(holder)
elseif last and last > epoch then
  return 0
end
set_session(identity, epoch, player)
redis.call('ZADD', leases, text(now_ms() + lease_ms), 'p:' .. player)
if redis.call('HGET', room, 'p:' .. player) ~= json then
  redis.call('HSET', room, 'p:' .. player, json)
  changed()
end
keep()
return 1
