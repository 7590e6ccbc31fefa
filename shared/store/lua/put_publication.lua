--include _room
-- Writes a publication unless one of an equal or higher generation stands, or another player of the room has that id.
-- ARGV: room TTL [ms], lease [ms], publication, player, generation, kind, source, sfu, PublicationRecord as JSON.
-- Returns 1 when the publication stands as given, 0 when refused.
local lease_ms, publication, player, generation = tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])
local old = fields_of(redis.call('HGET', room, 'b:' .. publication))
if old and type(old.player) == 'string' then
  if old.player ~= player and owns(old.player, publication) then return 0 end
  local stands = tonumber(old.generation) or 1
  if stands > generation then return 0 end
  if stands == generation then
    local same = old.player == player and old.kind == ARGV[6]
      and (old.source or '') == ARGV[7] and (old.sfu or '') == ARGV[8]
    return same and 1 or 0
  end
end
redis.call('HSET', room, 'b:' .. publication, ARGV[9])
if not owns(player, publication) then
  local publications = publications_of(player)
  table.insert(publications, publication)
  set_publications(player, publications)
end
-- A publication that comes before its player (the store was lost) goes with that player's lease all the same.
redis.call('ZADD', leases, 'NX', text(now_ms() + lease_ms), 'p:' .. player)
changed()
keep()
return 1
