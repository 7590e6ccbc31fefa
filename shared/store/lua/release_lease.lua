-- Gives the scaling lease back, if it is the caller's. KEYS: lease. ARGV: controller, token.
local holder = redis.call('HMGET', KEYS[1], 'controller', 'token')
if holder[1] == ARGV[1] and holder[2] == ARGV[2] then return redis.call('DEL', KEYS[1]) end
return 0
