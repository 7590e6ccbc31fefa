--include _room
-- A new session of an identity: the newest wins, an older one leaves with its publications.
-- ARGV: room TTL [ms], lease [ms], player, identity, PlayerRecord as JSON without an epoch.
-- Returns the epoch and, when there is one, the player that was replaced. Doing it twice does no harm.
local lease_ms, player, identity, json = tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local last, holder = newest_session(identity)
local epoch = math.max((last or 0) + 1, now_ms())
local answer = { text(epoch) }
if holder and holder ~= player and redis.call('HEXISTS', room, 'p:' .. holder) == 1 then
  drop_player(holder)
  table.insert(answer, holder)
end
redis.call('HSET', room, 'p:' .. player, with_number(json, 'epoch', text(epoch)))
set_session(identity, epoch, player)
redis.call('ZADD', leases, text(now_ms() + lease_ms), 'p:' .. player)
changed()
keep()
return answer
