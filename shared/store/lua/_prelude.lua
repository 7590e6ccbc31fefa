-- Helpers that every script starts with. Times come from this server's clock, never from a caller's.

local function text(number)
  return string.format('%.0f', number)
end

local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Unix seconds as decimal text with microseconds; a Lua number would print only 14 digits of it.
local function now_at()
  local time = redis.call('TIME')
  return string.format('%s.%06d', time[1], tonumber(time[2]))
end

-- The fields of a JSON object, for reading only: writing a decoded table back would turn empty arrays into objects.
local function fields_of(json)
  if not json then return nil end
  local ok, fields = pcall(cjson.decode, json)
  if ok and type(fields) == 'table' then return fields end
  return nil
end

-- The JSON object `json`, which has at least one field, with one more number field at its end.
local function with_number(json, field, number)
  return string.sub(json, 1, -2) .. ',"' .. field .. '":' .. number .. '}'
end
