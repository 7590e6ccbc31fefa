-- Counts for whom connections to SFUs came about and for whom not, and names SFUs that fail for many.
-- KEYS: hash of failing SFUs, then for each SFU two sorted sets by this server's clock [ms]: who was sent there, and for
-- whom it failed. ARGV: window [ms], share, players, pause [ms], members at most, then for each SFU: its id, its
-- incarnation, a number and as many words of who was sent there, a number and as many of those for whom it failed.
-- Returns the SFUs that are left out from now on. Nothing of before its pause counts afterwards.
local window_ms, share, players = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local pause_ms, most, now = tonumber(ARGV[4]), tonumber(ARGV[5]), now_ms()
local at, answer = 6, {}

local function take(key, flag, count)
  for i = at, at + count - 1 do
    if flag then redis.call('ZADD', key, flag, text(now), ARGV[i]) else redis.call('ZADD', key, text(now), ARGV[i]) end
  end
end

for i = 2, #KEYS, 2 do
  local tried, failed, sfu, incarnation = KEYS[i], KEYS[i + 1], ARGV[at], ARGV[at + 1]
  at = at + 2
  for _, key in ipairs({ tried, failed }) do
    local count = tonumber(ARGV[at])
    at = at + 1
    take(key, nil, count)
    if key == failed then take(tried, 'NX', count) end
    at = at + count
  end
  local sizes = {}
  for n, key in ipairs({ tried, failed }) do
    redis.call('ZREMRANGEBYSCORE', key, '-inf', text(now - window_ms))
    redis.call('ZREMRANGEBYRANK', key, 0, -most - 1)
    redis.call('PEXPIRE', key, text(window_ms))
    sizes[n] = redis.call('ZCARD', key)
  end
  if sizes[1] >= players and sizes[2] > share * sizes[1] then
    redis.call('HSET', KEYS[1], sfu, incarnation .. ' ' .. text(now + pause_ms))
    redis.call('DEL', tried, failed)
    table.insert(answer, sfu)
  end
end
return answer
