-- What the scripts of a room share. KEYS[1] is the room's hash, KEYS[2] its leases; ARGV[1] the room's TTL [ms].
-- Hash fields: version, place, p:<player> and b:<publication> (JSON), o:<player> (JSON list of its publications),
-- e:<identity> ("<epoch> <player>" of its newest session). Leases: p:<player>, and e:<identity> once that session left.

local room, leases = KEYS[1], KEYS[2]
local room_ttl_ms = tonumber(ARGV[1])

local function keep()
  redis.call('PEXPIRE', room, text(room_ttl_ms))
  redis.call('PEXPIRE', leases, text(room_ttl_ms))
end

-- The version never repeats, not even after the room or the whole store was lost: it is at least the time.
local function changed()
  local version = tonumber(redis.call('HGET', room, 'version')) or 0
  redis.call('HSET', room, 'version', text(math.max(version + 1, now_ms())))
end

local function newest_session(identity)
  local entry = redis.call('HGET', room, 'e:' .. identity)
  if not entry then return nil, nil end
  local epoch, player = string.match(entry, '^(%d+) (.*)$')
  return tonumber(epoch), player
end

local function set_session(identity, epoch, player)
  redis.call('HSET', room, 'e:' .. identity, text(epoch) .. ' ' .. player)
  redis.call('ZREM', leases, 'e:' .. identity)
end

local function publications_of(player)
  return fields_of(redis.call('HGET', room, 'o:' .. player)) or {}
end

local function set_publications(player, publications)
  if #publications == 0 then
    redis.call('HDEL', room, 'o:' .. player)
  else
    redis.call('HSET', room, 'o:' .. player, cjson.encode(publications))
  end
end

local function owns(player, publication)
  for _, each in ipairs(publications_of(player)) do
    if each == publication then return true end
  end
  return false
end

-- Removes a player with its publications. The epoch of its identity stays for one more room TTL, so that a write of
-- that session which was delayed on its way can't bring an older one back.
local function drop_player(player)
  local record = fields_of(redis.call('HGET', room, 'p:' .. player))
  for _, publication in ipairs(publications_of(player)) do
    redis.call('HDEL', room, 'b:' .. tostring(publication))
  end
  redis.call('HDEL', room, 'p:' .. player, 'o:' .. player)
  redis.call('ZREM', leases, 'p:' .. player)
  if record and type(record.identity) == 'string' then
    local _, holder = newest_session(record.identity)
    if holder == player then
      redis.call('ZADD', leases, text(now_ms() + room_ttl_ms), 'e:' .. record.identity)
    end
  end
end
