#!/bin/sh
# Runs a program of docker-compose.yml: makes the fleet's secret once, and derives its settings from the address that
# browsers use.
#
#   SLUICE_ADDRESS   IP address of this host; loopback, the default, is for trying it out
#   SLUICE_TLS_NAME      host name in front, where a proxy with TLS listens; its ports are ours + 1000
#   SLUICE_PUBLISHED_WS, SLUICE_PUBLISHED_HTTP   ports that are published for this program's websocket and, of a router, its page
#
# What is set already stays as it is.
set -eu

# The first program makes the secret; `ln` never replaces the file of another that was faster.
file=${SLUICE_SECRET_FILE:-}
if [ -n "$file" ] && [ -z "${SLUICE_SECRET:-}" ] && [ ! -s "$file" ]; then
    umask 077
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"$file.$$.$(hostname)"
    ln "$file.$$.$(hostname)" "$file" 2>/dev/null || [ -s "$file" ]
    rm -f "$file.$$.$(hostname)"
fi

address=${SLUICE_ADDRESS:-127.0.0.1}
# On loopback only this machine's people reach it: the page gives a token to all who ask, and the API says who talks where.
case $address in 127.*) open=true ;; *) open=false ;; esac
[ -n "${SLUICE_TLS_NAME:-}" ] && open=false
export SLUICE_DEV_TOKENS="${SLUICE_DEV_TOKENS:-$open}" SLUICE_API_OPEN="${SLUICE_API_OPEN:-$open}"

url() { # scheme port
    if [ -n "${SLUICE_TLS_NAME:-}" ]; then echo "${1}s://$SLUICE_TLS_NAME:$(($2 + 1000))"; else echo "$1://$address:$2"; fi
}
[ -z "${SLUICE_PUBLISHED_WS:-}" ] || export SLUICE_ANNOUNCED_WS="${SLUICE_ANNOUNCED_WS:-$(url ws "$SLUICE_PUBLISHED_WS")}"
[ -z "${SLUICE_PUBLISHED_HTTP:-}" ] || export SLUICE_ANNOUNCED_HTTP="${SLUICE_ANNOUNCED_HTTP:-$(url http "$SLUICE_PUBLISHED_HTTP")}"
export SLUICE_ANNOUNCED_IP="${SLUICE_ANNOUNCED_IP:-$address}"
exec "$@"
