--include _room
-- Which SFU new work of the room goes to: the one it has while that is eligible, else the first eligible one (P2, P3).
-- ARGV: room TTL [ms], then for each eligible SFU its id and its placement's JSON without the generation.
-- Returns the placement's JSON.
local json = redis.call('HGET', room, 'place')
local placed = fields_of(json)
if placed and type(placed.sfu) == 'string' then
  for i = 2, #ARGV, 2 do
    if ARGV[i] == placed.sfu then
      keep()
      return json
    end
  end
end
local generation = placed and (tonumber(placed.generation) or 1) or 0
local new = with_number(ARGV[3], 'generation', text(generation + 1))
redis.call('HSET', room, 'place', new)
changed()
keep()
return new
