#!/bin/sh
# Runs a tier of the tests: `test.sh VENV test|quick|slow [PYTEST ARGUMENTS]`. Adds Chromium and the other WebRTC stacks
# they meet where it may. tests/tiers.py says what belongs to a tier and what runs side by side.
set -eu
venv=$1
tier=$2
shift 2

have_chromium() {
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null
}

install_what_is_missing() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
    if ! have_chromium; then
        echo "sluice: installing chromium for the browser tests" >&2
        { apt-get update -q && apt-get install -yq --no-install-recommends chromium; } >&2 ||
            echo "sluice: chromium can't be installed; the browser tests will say so" >&2
    fi
    scripts/install-peers.sh || echo "sluice: the foreign WebRTC stacks can't be installed; the tests with them will say so" >&2
}

# Process tests wait more than they compute: three lanes of them and a worker for unit tests fill two cores.
case $tier in
test) install_what_is_missing && set -- -n 4 -m "not slow" "$@" ;;
quick) set -- -n 3 -m "unit and not slow" "$@" ;;
slow) set -- -m "slow or hypothesis" --hypothesis-profile=full "$@" ;;
*) echo "test.sh: no tier $tier; there are test, quick and slow" >&2 && exit 2 ;;
esac
# Hundreds of short-lived programs start faster with byte code. It is kept out of the source, also for those who want none.
export PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX="$(cd "$venv" && pwd)/pycache"
exec "$venv/bin/python" -m pytest "$@"
