-- The autoscaler's state for the controller that is to change it. KEYS: token counter, state. ARGV: token.
-- Returns the newest token, this server's clock, and the state's JSON or nothing.
--include _token
local newest = newest_token(KEYS[1])
if type(newest) == 'table' then return newest end
return { text(newest), now_at(), redis.call('GET', KEYS[2]) }
