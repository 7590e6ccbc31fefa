-- In-flight records: what was placed on an SFU and its reports can't show yet. Text, since each placement reads many:
-- "<second> <joins in it> <joins in the one before>", then for each version of the report that decided
-- ";<incarnation> <revision> <joins> <rooms> <when the first was placed [ms]>". What can't be read is empty.

-- LIFE_MS is `shared.placing.IN_FLIGHT_LIFE_S`; FORGET_AFTER is more than the 5 reports until a placement is shown that
-- older routers can be set to.
local MAX_VERSIONS, FORGET_AFTER, LIFE_MS = 6, 6, 20000
local HEAD, EACH = '^(%d+) (%d+) (%d+)', ';(%d+) (%d+) (%d+) (%d+) (%d+)'

-- Joins of this second and of the one before; nil for a record that can't be read. No SFU gets a billion joins a
-- second, and what overflows to infinity is no number to a router.
local function pace(raw, second)
  local at, joins, before = string.match(raw, HEAD)
  if not at or #at > 18 or #joins > 9 or #before > 9 then return nil end
  at = tonumber(at)
  if at == second then return tonumber(joins), tonumber(before) end
  return 0, at == second - 1 and tonumber(joins) or 0
end

-- Joins a second over the last one: those of this second and what of the one before still lies within.
local function per_second(raw, now)
  local joins, before = pace(raw, math.floor(now / 1000))
  return joins and joins + before * (1 - (now % 1000) / 1000) or 0
end

-- What a router reads of a version (`_COUNTS` in placements.py): what it can't read does not count.
local function readable(i, r, joins, rooms, since)
  return #i <= 19 and #r <= 19 and #joins <= 9 and #rooms <= 9 and #since <= 18
end

-- Joins and rooms that a report of that version does not show; a later incarnation has forgotten them all.
local function not_shown(raw, incarnation, revision, reports, now)
  local joins, rooms = 0, 0
  if not pace(raw, 0) then return joins, rooms end
  for i, r, more_joins, more_rooms, since in string.gmatch(raw, EACH) do
    local counts = false
    if readable(i, r, more_joins, more_rooms, since) then
      i = tonumber(i)
      counts = i > incarnation or (i == incarnation and tonumber(r) + reports > revision)
    end
    if counts and now - tonumber(since) < LIFE_MS then
      joins, rooms = joins + tonumber(more_joins), rooms + tonumber(more_rooms)
    end
  end
  return joins, rooms
end

-- The record with a placement more. Versions that even a router which lags behind has seen shown go, those that are
-- over or can't be read go, and of too many the oldest.
local function with_placement(raw, version, joins, rooms, now)
  local second = math.floor(now / 1000)
  local this, before = pace(raw, second)
  local incarnation, revision = string.match(version, '^(%d+) (%d+)$')
  incarnation, revision = tonumber(incarnation), tonumber(revision)
  local kept, since, placed = {}, text(now), joins
  for i, r, j, m, at in string.gmatch(this and raw or '', EACH) do
    local known = readable(i, r, j, m, at)
    if known and i .. ' ' .. r == version and now - tonumber(at) < LIFE_MS then
      joins, rooms, since = joins + tonumber(j), rooms + tonumber(m), at
    elseif known then
      local old = tonumber(i) < incarnation or (tonumber(i) == incarnation and tonumber(r) + FORGET_AFTER < revision)
      if not old and now - tonumber(at) < LIFE_MS then
        table.insert(kept, ';' .. table.concat({ i, r, j, m, at }, ' '))
      end
    end
  end
  while #kept >= MAX_VERSIONS do table.remove(kept, 1) end
  table.insert(kept, ';' .. table.concat({ version, text(joins), text(rooms), since }, ' '))
  local head = table.concat({ text(second), text((this or 0) + placed), text(before or 0) }, ' ')
  return head .. table.concat(kept)
end
