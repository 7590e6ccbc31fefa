-- Removes a record and its id from the index. KEYS: record, index. ARGV: id.
redis.call('DEL', KEYS[1])
redis.call('SREM', KEYS[2], ARGV[1])
return 1
