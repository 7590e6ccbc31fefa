#!/bin/sh
# Whether the program in this container is ready: `sluice-healthy PORT` asks its /readyz, `sluice-healthy redis` pings Redis.
# A parked SFU (sfu.sh) is not.
set -u
[ ! -e "${SLUICE_STATE:-$HOME}/parked-$(hostname)" ] || exit 1
case ${1:-} in
redis) exec python3 -ISc 'import socket
with socket.create_connection(("127.0.0.1", 6379), timeout=3) as redis:
    redis.sendall(b"PING\r\n")
    raise SystemExit(redis.recv(7) != b"+PONG\r\n")' ;;
*) exec python3 -ISc 'import http.client, sys
asked = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=3)
asked.request("GET", "/readyz")
raise SystemExit(asked.getresponse().status != 200)' "$1" ;;
esac
