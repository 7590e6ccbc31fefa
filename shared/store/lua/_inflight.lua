-- In-flight records: what was placed on an SFU and its reports can't show yet. Text, since each placement reads many:
-- "<second> <joins in it> <joins in the one before> <joins a second now, x1000>", then for each version of the report that
-- decided ";<incarnation> <revision> <joins> <rooms> <when the first was placed [ms]>". What can't be read is empty.

local MAX_VERSIONS, FORGET_AFTER, LIFE_MS = 8, 8, 20000

local function read_in_flight(raw, now)
  local record = { second = math.floor(now / 1000), now = 0, before = 0, part = (now % 1000) / 1000, versions = {} }
  raw = type(raw) == 'string' and raw or ''
  local second, joins, before = string.match(raw, '^(%d+) (%d+) (%d+) %d+')
  if not second then return record end
  second = tonumber(second)
  if second == record.second then
    record.now, record.before = tonumber(joins), tonumber(before)
  elseif second == record.second - 1 then
    record.before = tonumber(joins)
  end
  for incarnation, revision, j, r, since in string.gmatch(raw, ';(%d+) (%d+) (%d+) (%d+) (%d+)') do
    if now - tonumber(since) < LIFE_MS then
      table.insert(record.versions, { name = incarnation .. ' ' .. revision, incarnation = tonumber(incarnation),
        revision = tonumber(revision), joins = tonumber(j), rooms = tonumber(r), since = since })
    end
  end
  return record
end

-- Joins a second over the last one: the count of this second and what of the last one still lies within.
local function per_second(record)
  return record.now + record.before * (1 - record.part)
end

local function write_in_flight(record)
  local parts = { string.format('%.0f %.0f %.0f %.0f', record.second, record.now, record.before, per_second(record) * 1000) }
  for _, each in ipairs(record.versions) do
    table.insert(parts, string.format(';%s %.0f %.0f %s', each.name, each.joins, each.rooms, each.since))
  end
  return table.concat(parts)
end

-- What a report of that version does not show; a later incarnation has forgotten it all.
local function not_shown(record, incarnation, revision, reports)
  local counts = { joins = 0, rooms = 0 }
  for _, each in ipairs(record.versions) do
    if each.incarnation > incarnation or (each.incarnation == incarnation and each.revision + reports > revision) then
      counts.joins, counts.rooms = counts.joins + each.joins, counts.rooms + each.rooms
    end
  end
  return counts
end

-- Adds a placement under the version that decided it. Versions that even a router which lags behind has seen shown go,
-- and of too many the oldest.
local function count_in_flight(record, version, joins, rooms, now)
  record.now = record.now + joins
  local incarnation, revision = string.match(version, '^(%d+) (%d+)$')
  incarnation, revision = tonumber(incarnation), tonumber(revision)
  local kept, found = {}, false
  for _, each in ipairs(record.versions) do
    if each.name == version then
      each.joins, each.rooms, found = each.joins + joins, each.rooms + rooms, true
    end
    local old = each.incarnation < incarnation
      or (each.incarnation == incarnation and each.revision + FORGET_AFTER < revision)
    if not old then table.insert(kept, each) end
  end
  if not found then
    table.insert(kept, { name = version, incarnation = incarnation, revision = revision, joins = joins, rooms = rooms,
      since = text(now) })
  end
  while #kept > MAX_VERSIONS do table.remove(kept, 1) end
  record.versions = kept
end
