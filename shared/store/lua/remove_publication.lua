--include _room
-- Ends a publication of that player. ARGV: room TTL [ms], publication, player. Returns 1, or 0 when it was not there.
local publication, player = ARGV[2], ARGV[3]
if not owns(player, publication) then return 0 end
local rest = {}
for _, each in ipairs(publications_of(player)) do
  if each ~= publication then table.insert(rest, each) end
end
set_publications(player, rest)
redis.call('HDEL', room, 'b:' .. publication)
changed()
return 1
