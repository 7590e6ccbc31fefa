-- Ends every lease of the room that has run out. True when a player or publication went.
local function sweep()
  local any = false
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', text(now_ms()))) do
    local kind, name = string.sub(member, 1, 2), string.sub(member, 3)
    if kind == 'p:' then
      drop_player(name)
      any = true
    else
      redis.call('HDEL', room, member)
      redis.call('ZREM', leases, member)
    end
  end
  if any then changed() end
  return any
end
