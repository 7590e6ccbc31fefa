-- Writes a record with a lifetime and its id into the index, and when the fleet's first one was written.
-- KEYS: record, index, since. ARGV: id, JSON, TTL [s].
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('SET', KEYS[3], now_at(), 'NX')
return 1
