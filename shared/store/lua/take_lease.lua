-- Takes the scaling lease if it is free, or renews it for its holder (A7).
-- KEYS: lease, token counter. ARGV: controller, the token it holds (0: none), lease [ms], a token that was seen before.
-- Returns mine (1 or 0), the holder, its token, and the lease's rest [ms].
--include _token
local newest = newest_token(KEYS[2])
if type(newest) == 'table' then return newest end
local holder = redis.call('HMGET', KEYS[1], 'controller', 'token')
if holder[1] then
  local mine = holder[1] == ARGV[1] and holder[2] == ARGV[2] and newest == tonumber(ARGV[2])
  -- A lease written by hand without an end, or with one that no setting gives, would keep every controller out.
  local left_ms = redis.call('PTTL', KEYS[1])
  if mine or left_ms < 0 or left_ms > 100 * tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
  return { mine and 1 or 0, holder[1], holder[2] or '0', redis.call('PTTL', KEYS[1]) }
end
-- At least the time, and above the caller's own token: a server that lost its data gives no token out twice, and none
-- below those that SFUs have seen and go on fencing by, whichever controller asks.
local token = text(math.max(newest + 1, tonumber(ARGV[2]) + 1, tonumber(ARGV[4]) + 1, now_ms()))
redis.call('SET', KEYS[2], token)
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'controller', ARGV[1], 'token', token)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return { 1, ARGV[1], token, tonumber(ARGV[3]) }
