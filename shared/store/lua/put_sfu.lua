-- Writes an SFU's state unless a newer one is known (invariant 2), and stamps it by this server's clock.
-- KEYS: record, stamps, index. ARGV: id, SfuState as JSON, incarnation, revision, draining (1, 0 or ? for a status of a
-- newer version), started_at and cordoned_at as the state says them (or empty), record TTL [s], stamps TTL [s], boot of
-- the process (or empty), and for how long after its last write another process with this id is refused [s].
-- Returns accepted (1 or 0), started_at, cordoned_at (or empty), the incarnation and revision that stand, and taken (1:
-- another process has the id; or 0).
local id, json, incarnation, revision, draining = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- Versions are decimal text: exact at any size, where Lua's numbers end at 2^53.
local function decimal(stamp)
  return stamp and string.match(stamp, '^%d+$') or '0'
end
local function above(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end

local stamps = redis.call('HMGET', KEYS[2], 'incarnation', 'revision', 'started_at', 'cordoned_at', 'removed', 'heard_at',
  'boot')
local known, known_revision = decimal(stamps[1]), decimal(stamps[2])
local now = now_at()
local owner = stamps[7] or ''
if ARGV[10] ~= '' and owner ~= '' and owner ~= ARGV[10] and now - (stamps[6] or 0) < tonumber(ARGV[11]) then
  return { 0, stamps[3] or '', stamps[4] or '', known, known_revision, 1 }
end
local removed = stamps[5] and not above(incarnation, decimal(stamps[5]))
if removed or above(known, incarnation) or (known == incarnation and above(known_revision, revision)) then
  return { 0, stamps[3] or '', stamps[4] or '', known, known_revision, 0 }
end

local function not_after_now(at)
  if at == '' or tonumber(at) > tonumber(now) then return now end
  return at
end
local same = stamps[1] and known == incarnation
local started = same and stamps[3] or not_after_now(ARGV[6])
local cordoned = same and stamps[4] or ''
if draining == '0' then
  cordoned = ''
elseif draining == '1' and cordoned == '' then
  cordoned = not_after_now(ARGV[7])
end

-- The same revision written again renews the record and is no news of the SFU. A record without versions always is.
local news = not same or incarnation == '0' or known_revision ~= revision
local heard = not news and stamps[6] or now

redis.call('SET', KEYS[1], json, 'EX', ARGV[8])
redis.call('SADD', KEYS[3], id)
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[2], 'incarnation', incarnation, 'revision', revision, 'started_at', started,
  'heard_at', heard, 'boot', ARGV[10])
if cordoned ~= '' then redis.call('HSET', KEYS[2], 'cordoned_at', cordoned) end
redis.call('EXPIRE', KEYS[2], ARGV[9])
return { 1, started, cordoned, incarnation, revision, 0 }
