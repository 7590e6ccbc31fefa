-- Writes an operator's order, dated by this server's clock.
-- KEYS: hash. ARGV: field, the order as JSON without `at`, lifetime [s]. Returns the order's JSON.
--include _order
return write_order(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
