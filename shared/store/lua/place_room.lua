--include _room
--include _inflight
-- Which SFU new work of the room goes to: the one it has unless the caller refuses that, else the best offer (P2, P3):
-- the lowest level, then the lowest figure with what is in flight (P4), then the first.
-- KEYS: room, leases, then an in-flight record for each offer. ARGV: room TTL [ms], count a join (1 or 0), rooms and
-- not joins add to the figure (1 or 0), revisions after which a report shows a join, joins a second at most (0: any),
-- life of an in-flight record [ms], number of refused SFUs, these, then for each offer: SFU, its placement's JSON
-- without the generation, incarnation, revision, level, figure, cost.
-- Returns the placement's JSON, 1 when it is new, and each in-flight record as it was, its rate brought up to now.
local join, per_room, reports = ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4])
local cap, life_ms, refused = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local FIELDS, first, now = 7, 8 + refused, now_ms()

local offers, raws = {}, redis.call('MGET', unpack(KEYS, 3))
for i = 1, #KEYS - 2 do
  local at = first + (i - 1) * FIELDS
  local incarnation, revision = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local record = read_in_flight(raws[i], now)
  local counts = not_shown(record, incarnation, revision, reports)
  local corrected = tonumber(ARGV[at + 5]) + tonumber(ARGV[at + 6]) * (per_room and counts.rooms or counts.joins)
  local level = tonumber(ARGV[at + 4])
  -- Above any level that a caller gives.
  if cap > 0 and per_second(record) >= cap then level = level + 1e9 end
  offers[i] = { sfu = ARGV[at], json = ARGV[at + 1], version = ARGV[at + 2] .. ' ' .. ARGV[at + 3],
    level = level, corrected = corrected, record = record }
end

local function standing()
  local json = redis.call('HGET', room, 'place')
  local placed = fields_of(json)
  local generation = placed and (placed.generation == nil and 1 or placed.generation)
  local numbered = type(generation) == 'number' and generation >= 1 and generation <= 2 ^ 53 and generation % 1 == 0
  if not numbered then return nil, nil, 0 end
  return json, type(placed.sfu) == 'string' and placed.sfu or nil, generation
end

local json, sfu, generation = standing()
for i = 8, 7 + refused do
  if sfu == ARGV[i] then sfu = nil end
end
local fresh, chosen = sfu == nil, nil
for i, offer in ipairs(offers) do
  if not fresh then
    if offer.sfu == sfu then chosen = offer end
  elseif not chosen or offer.level < chosen.level
    or (offer.level == chosen.level and offer.corrected < chosen.corrected) then
    chosen = offer
  end
end
if fresh then
  json = with_number(chosen.json, 'generation', text(generation + 1))
  redis.call('HSET', room, 'place', json)
  changed()
end
keep()

local answer = { json, fresh and 1 or 0 }
for _, offer in ipairs(offers) do
  table.insert(answer, write_in_flight(offer.record))
end
if chosen and (join or fresh) then
  count_in_flight(chosen.record, chosen.version, join and 1 or 0, fresh and 1 or 0, now)
  for i, offer in ipairs(offers) do
    if offer == chosen then redis.call('SET', KEYS[i + 2], write_in_flight(chosen.record), 'PX', text(life_ms)) end
  end
end
return answer
