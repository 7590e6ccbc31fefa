-- Puts placements in front of a capped list. KEYS: list. ARGV: how many to keep, then records as JSON, the newest last.
for i = 2, #ARGV do redis.call('LPUSH', KEYS[1], ARGV[i]) end
redis.call('LTRIM', KEYS[1], 0, tonumber(ARGV[1]) - 1)
return 1
