-- Counts a join of which place_room does not know: the player goes to another SFU than its room (P4).
-- KEYS: the SFU's in-flight record. ARGV: incarnation, revision, life of the record [ms].
-- Returns the record with it, and its joins a second now, x1000.
--include _inflight
local now = now_ms()
local raw = with_placement(redis.call('MGET', KEYS[1])[1] or '', ARGV[1] .. ' ' .. ARGV[2], 1, 0, now)
redis.call('SET', KEYS[1], raw, 'PX', ARGV[3])
return { raw, text(per_second(raw, now) * 1000) }
