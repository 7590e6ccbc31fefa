-- The roll: KEYS: lease, plan. Returns this server's clock, the holder, its token, the lease's rest [ms], the plan's JSON;
-- empty where there is none.
local holder = redis.call('HMGET', KEYS[1], 'controller', 'token')
local left_ms = math.max(0, redis.call('PTTL', KEYS[1]))
return { now_at(), holder[1] or '', holder[2] or '0', left_ms, redis.call('GET', KEYS[2]) or '' }
