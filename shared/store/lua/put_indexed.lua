-- Writes a record with a lifetime and its id into the index. KEYS: record, index. ARGV: id, JSON, TTL [s].
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
return 1
