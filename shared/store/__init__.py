"""What a fleet keeps in Redis: typed reads and writes, decided there by Lua where it must be atomic."""
