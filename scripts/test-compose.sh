#!/bin/bash
# Proves docker-compose.yml on this machine: builds the image, brings the fleet up, drains one SFU with `docker stop`, and checks
# that the bots noticed nothing. Needs a Docker engine, docker compose (v2 or 1.29) and, unless SLUICE_BASE names an image that
# is here or can be pulled, root and debootstrap.
#
#   SLUICE_BASE=python:3.11-slim-bookworm make test-compose
set -euo pipefail
cd "$(dirname "$0")/.."
PROJECT=sluice-test-$$
VENV=${VENV:-.venv}
BOTS=${SLUICE_BOTS:-6}
work=$(mktemp -d)
say() { echo "test-compose: $*" >&2; }

compose() {
    if docker compose version >/dev/null 2>&1; then docker compose -p "$PROJECT" "$@"; else docker-compose -p "$PROJECT" "$@"; fi
}

finish() {
    status=$?
    if [ "$status" != 0 ]; then compose ps >&2; compose logs --no-color --tail=40 >&2 || true; fi
    compose down -v --remove-orphans >/dev/null 2>&1 || true
    docker image rm "sluice:${SLUICE_IMAGE:-none}" >/dev/null 2>&1 || true
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT

docker info >/dev/null 2>&1 || { say "no Docker engine answers; start one: dockerd &"; exit 1; }

# A base image with nothing but Debian, made here: the Dockerfile must cope with one that has no Python.
if [ -z "${SLUICE_BASE:-}" ]; then
    export SLUICE_BASE=sluice-base:bookworm
    if ! docker image inspect "$SLUICE_BASE" >/dev/null 2>&1; then
        say "making the base image $SLUICE_BASE"
        debootstrap --variant=minbase bookworm "$work/root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$work/debootstrap.log" 2>&1 ||
            { tail "$work/debootstrap.log" >&2; exit 1; }
        tar -C "$work/root" -c . | docker import - "$SLUICE_BASE" >/dev/null
        rm -rf "$work/root"
    fi
fi

# The context: what git knows, and wheels built with whatever pip settings this machine has, so that the build needs none of them.
say "building the image on $SLUICE_BASE"
mkdir "$work/context"
git ls-files -co --exclude-standard -z -- . ':!tests' | xargs -0 cp --parents -t "$work/context" --
[ -x "$VENV/bin/pip" ] || scripts/setup.sh "$VENV" run
# async-timeout: redis-py wants it before Python 3.11.3, which Debian 12 has; pip leaves it out on a newer Python.
"$VENV/bin/pip" wheel -qq --wheel-dir "$work/wheels" "$work/context[docker,kubernetes]" async-timeout
rm -rf "$work/context/build" && mv "$work/wheels" "$work/context/wheels"
export SLUICE_IMAGE=test-$$
docker build --network=host --build-arg BASE="$SLUICE_BASE" -f "$work/context/deploy/Dockerfile" -t "sluice:$SLUICE_IMAGE" \
    "$work/context" >"$work/build.log" 2>&1 || { tail -n 30 "$work/build.log" >&2; exit 1; }

SLUICE_SECRET=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
export SLUICE_SECRET SLUICE_BOTS=2 SLUICE_GRACE_S=300 SLUICE_DRAIN_MAX_S=200
say "bringing the fleet up"
compose up -d --no-build >"$work/up.log" 2>&1 || { cat "$work/up.log" >&2; exit 1; }
PYTHONPATH=. "$VENV/bin/python" scripts/compose_drain.py --project "$PROJECT" --image "sluice:$SLUICE_IMAGE" --secret "$SLUICE_SECRET" --bots "$BOTS"
say "a pool of containers in addition"
"$VENV/bin/pip" install -qq --no-index --find-links "$work/context/wheels" aiodocker
PYTHONPATH=. "$VENV/bin/python" -m scripts.compose_pool --project "$PROJECT" --image "sluice:$SLUICE_IMAGE" --secret "$SLUICE_SECRET"
