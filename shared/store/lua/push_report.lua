-- Puts a report in front of a capped list; one that several routers hand in is kept once.
-- KEYS: list. ARGV: the report as JSON, how many to keep.
if redis.call('LPOS', KEYS[1], ARGV[1], 'MAXLEN', 100) then return 0 end
redis.call('LPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[2]) - 1)
return 1
