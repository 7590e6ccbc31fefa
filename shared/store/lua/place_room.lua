--include _room
--include _inflight
-- Which SFU new work of the room goes to: the one it has unless the caller refuses that, else the best offer (P2, P3):
-- the one with the smallest key, then the first. The key is that of `shared.placing.Offer`: a rank, which the caller
-- has made, and on one rank the figure with what is in flight (P4).
-- KEYS: room, leases, then an in-flight record for each offer. ARGV: room TTL [ms], count a join (1 or 0), rooms and
-- not joins add to the figure (1 or 0), revisions after which a report shows a join, joins a second at most (0: any),
-- the digit of the rank of an SFU over that cap, life of an in-flight record [ms], whether there are more SFUs to offer
-- (1 or 0), number of refused SFUs, these, then for each offer: SFU, its placement's JSON without the generation,
-- incarnation, revision, rank, figure, cost.
-- Returns the placement's JSON, 1 when it is new, then for each offer its in-flight record as it was and its joins a
-- second now, x1000. The JSON is empty when nothing was placed: the best offer is over the cap, and there are more.
local join, per_room, reports = ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4])
local cap, too_fast, life_ms = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local more, refused = ARGV[8] == '1', tonumber(ARGV[9])
local FIELDS, REFUSED, now = 7, 10, now_ms()

local offers, raws = {}, redis.call('MGET', unpack(KEYS, 3))
for i = 1, #KEYS - 2 do
  local at, raw = REFUSED + refused + (i - 1) * FIELDS, raws[i] or ''
  local rank, figure, rate = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5]), 0
  if raw ~= '' then
    local joins, rooms = not_shown(raw, tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), reports, now)
    figure = figure + tonumber(ARGV[at + 6]) * (per_room and rooms or joins)
    rate = per_second(raw, now)
  end
  if cap > 0 and rate >= cap then rank = bit.bor(rank, too_fast) end
  offers[i] = { number = i, at = at, sfu = ARGV[at], rank = rank, figure = figure, raw = raw, rate = rate }
end

local function standing()
  local json = redis.call('HGET', room, 'place')
  local placed = fields_of(json)
  local generation = placed and (placed.generation == nil and 1 or placed.generation)
  -- A whole number to Lua may be written as none: 1e3 and 3.0 are no generation to a router.
  local written = json and not string.find(json, '"generation"%s*:%s*%d+[.eE]')
  local numbered = written and type(generation) == 'number' and generation >= 1 and generation <= 2 ^ 53 and generation % 1 == 0
  if not numbered then return nil, nil, 0 end
  return json, type(placed.sfu) == 'string' and placed.sfu or nil, generation
end

local json, sfu, generation = standing()
for i = REFUSED, REFUSED + refused - 1 do
  if sfu == ARGV[i] then sfu = nil end
end
local fresh, chosen = sfu == nil, nil
for i, offer in ipairs(offers) do
  if not fresh then
    if offer.sfu == sfu then chosen = offer end
  elseif not chosen or offer.rank < chosen.rank or (offer.rank == chosen.rank and offer.figure < chosen.figure) then
    chosen = offer
  end
end
local ask_again = fresh and more and cap > 0 and chosen.rate >= cap
if ask_again then
  json, fresh, chosen = '', false, nil
elseif fresh then
  json = with_number(ARGV[chosen.at + 1], 'generation', text(generation + 1))
  redis.call('HSET', room, 'place', json)
  changed()
end
if not ask_again then keep() end

local answer = { json, fresh and 1 or 0 }
for _, offer in ipairs(offers) do
  table.insert(answer, offer.raw)
  table.insert(answer, text(offer.rate * 1000))
end
if chosen and (join or fresh) then
  local version = ARGV[chosen.at + 2] .. ' ' .. ARGV[chosen.at + 3]
  local raw = with_placement(chosen.raw, version, join and 1 or 0, fresh and 1 or 0, now)
  redis.call('SET', KEYS[chosen.number + 2], raw, 'PX', text(life_ms))
end
return answer
