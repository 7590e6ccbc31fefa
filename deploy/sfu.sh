#!/bin/sh
# Runs an SFU in a container whose restart policy is `unless-stopped`, and keeps a deliberate drain drained.
#
# Docker starts such a container again after a crash and after the host or the daemon was restarted, but also when the SFU has
# ended because an operator drained it (`sluice drain`, `sluice exit`). That last case parks the container: it stays up, runs
# nothing, and parks again at each start. A container made new (`docker compose up -d --force-recreate SFU`) serves again.
# A SIGTERM is no such order: Docker remembers a `docker stop`, and a restart of the host means to come back.
#
# SIGTERM must reach the whole process group, as Docker's init does it with TINI_KILL_PROCESS_GROUP: the shell could miss one
# that comes just before `wait`, and would wait on for an SFU that never heard of it.
set -u
# By the container's id: what is kept outlives the container, and a new one must serve.
parked=${SLUICE_STATE:-$HOME}/parked-$(hostname)
child=
asked=

end() {
    asked=1
    [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
}
trap end TERM INT

park() {
    echo "sfu.sh: parked, because an operator ended this SFU; a new container serves again (docs/deploy-compose.md)" >&2
    # A signal between two commands interrupts no `wait`: hence short sleeps.
    while [ -z "$asked" ]; do
        sleep 2 &
        child=$!
        wait "$child"
    done
    exit 0
}

[ ! -e "$parked" ] || park
sluice sfu "$@" &
child=$!
[ -z "$asked" ] || end
# `wait` returns early for a signal: the status counts only once the process is gone.
while :; do
    wait "$child"
    status=$?
    kill -0 "$child" 2>/dev/null || break
done
# If the process ended in the moment of the signal, that was the signal's status; asked again, `wait` tells the process' own.
if [ -n "$asked" ]; then
    wait "$child"
    again=$?
    [ "$again" = 127 ] || status=$again
fi
[ "$status" = 0 ] && [ -z "$asked" ] || exit "$status"
: >"$parked"
park
