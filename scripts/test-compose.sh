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
MOST_MEGABYTES=450
work=$(mktemp -d)
say() { echo "test-compose: $*" >&2; }

compose() {
    if docker compose version >/dev/null 2>&1; then docker compose -p "$PROJECT" "$@"; else docker-compose -p "$PROJECT" "$@"; fi
}

finish() {
    status=$?
    if [ "$status" != 0 ]; then compose ps >&2; compose logs --no-color --tail=40 >&2 || true; fi
    compose down -v --remove-orphans >/dev/null 2>&1 || true
    docker image rm "sluice:${SLUICE_IMAGE:-none}" "sluice-bots:${SLUICE_IMAGE:-none}" >/dev/null 2>&1 || true
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
        rm -rf "$work/root"/var/cache/apt/* "$work/root"/var/lib/apt/lists/*  # as in Debian's own image
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
"$VENV/bin/pip" wheel -qq --wheel-dir "$work/wheels" "$work/context[bots,docker,kubernetes]" async-timeout
rm -rf "$work/context/build" && mv "$work/wheels" "$work/context/wheels"
export SLUICE_IMAGE=test-$$
build() { # image, extras
    docker build --network=host --build-arg BASE="$SLUICE_BASE" --build-arg EXTRAS="$2" -f "$work/context/deploy/Dockerfile" \
        -t "$1:$SLUICE_IMAGE" "$work/context" >"$work/build.log" 2>&1 || { tail -n 30 "$work/build.log" >&2; exit 1; }
    megabytes=$(($(docker image inspect -f '{{.Size}}' "$1:$SLUICE_IMAGE") / 1000000))
    say "$1 has $megabytes MB"
    [ "$megabytes" -lt "$MOST_MEGABYTES" ] || { say "that is more than $MOST_MEGABYTES"; exit 1; }
}
build sluice ""
build sluice-bots bots
docker run --rm --entrypoint python "sluice:$SLUICE_IMAGE" -c '
import importlib.util as util, shutil
there = [name for name in ("numpy", "kubernetes_asyncio", "aiodocker", "matplotlib", "pip") if util.find_spec(name)]
raise SystemExit(f"an SFU needs none of {there}" if there or shutil.which("gcc") else util.find_spec("sfu.plane.compiled") is None)'

export SLUICE_BOTS=2 SLUICE_GRACE_S=300 SLUICE_DRAIN_MAX_S=200
unset SLUICE_SECRET SLUICE_ADDRESS SLUICE_TLS_NAME
say "bringing the fleet up"
compose up -d --no-build >"$work/up.log" 2>&1 || { cat "$work/up.log" >&2; exit 1; }
# Nothing was set: the fleet has made its secret.
SLUICE_SECRET=$(compose exec -T router-1 cat /var/lib/sluice/secret)
PYTHONPATH=. "$VENV/bin/python" scripts/compose_drain.py --project "$PROJECT" --image "sluice-bots:$SLUICE_IMAGE" --secret "$SLUICE_SECRET" --bots "$BOTS"
say "a pool of containers in addition"
"$VENV/bin/pip" install -qq --no-index --find-links "$work/context/wheels" aiodocker
PYTHONPATH=. "$VENV/bin/python" -m scripts.compose_pool --project "$PROJECT" --image "sluice:$SLUICE_IMAGE" --secret "$SLUICE_SECRET"
