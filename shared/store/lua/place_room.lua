--include _room
-- Which SFU new work of the room goes to: the one it has while that is eligible, else the first eligible one (P2, P3).
-- ARGV: room TTL [ms], then for each eligible SFU its id and its placement's JSON without the generation.
-- Returns the placement's JSON.
local json = redis.call('HGET', room, 'place')
local placed = fields_of(json)
local standing = placed and (placed.generation == nil and 1 or placed.generation)
if type(standing) ~= 'number' or standing < 1 or standing > 2 ^ 53 or standing % 1 ~= 0 then standing = nil end
if standing and type(placed.sfu) == 'string' then
  for i = 2, #ARGV, 2 do
    if ARGV[i] == placed.sfu then
      keep()
      return json
    end
  end
end
local new = with_number(ARGV[3], 'generation', text((standing or 0) + 1))
redis.call('HSET', room, 'place', new)
changed()
keep()
return new
