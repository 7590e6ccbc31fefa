#!/bin/sh
# Runs the tests: `test.sh VENV [PYTEST ARGUMENTS]`. Installs Chromium and the other WebRTC stacks for them where it may.
set -eu
venv=$1
shift

have_chromium() {
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null
}

if ! have_chromium && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "sluice: installing chromium for the browser tests" >&2
    { apt-get update -q && apt-get install -yq --no-install-recommends chromium; } >&2 ||
        echo "sluice: chromium can't be installed; the browser tests will say so" >&2
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    scripts/install-peers.sh || echo "sluice: the foreign WebRTC stacks can't be installed; the tests with them will say so" >&2
fi
exec "$venv/bin/python" -m pytest "$@"
