-- Writes a roll's plan and renews its lease, for the command with the newest fencing token only (invariant 9).
-- KEYS: token counter, lease, plan, SFUs still to be rolled. ARGV: token, command, lease [ms], plan as JSON, its lifetime
-- [s], the SFUs as a JSON list or empty. Returns 1, or the newest token as text when it is another.
--include _token
local newest = newest_token(KEYS[1])
if type(newest) == 'table' then return newest end
if newest ~= tonumber(ARGV[1]) then return text(newest) end
local holder = redis.call('HGET', KEYS[2], 'controller')
-- A lease that was given away has another holder until it is taken under a new token.
if holder and holder ~= ARGV[2] then return text(newest) end
redis.call('HSET', KEYS[2], 'controller', ARGV[2], 'token', ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('SET', KEYS[3], ARGV[4], 'EX', ARGV[5])
if ARGV[6] == '' then redis.call('DEL', KEYS[4]) else redis.call('SET', KEYS[4], ARGV[6], 'PX', ARGV[3]) end
return 1
