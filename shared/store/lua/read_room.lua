--include _room
--include _sweep
-- The whole room, after leases that ran out have ended. ARGV: room TTL [ms]. Returns the hash's fields and values.
sweep()
return redis.call('HGETALL', room)
