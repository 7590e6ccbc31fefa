#!/bin/sh
# Installs the foreign WebRTC stacks that tests/interop meets: GStreamer's webrtcbin from Debian, and the npm package
# @roamhq/wrtc (libwebrtc) into DIR: `install-peers.sh [DIR]`. Does nothing when they are there.
set -eu
cd "$(dirname "$0")/.."
dir=${1:-${SLUICE_PEERS:-.peers}}
wrtc=0.10.0
packages="python3-gi gir1.2-gst-plugins-base-1.0 gir1.2-gst-plugins-bad-1.0 gstreamer1.0-nice
    gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad"

say() { echo "sluice: $*" >&2; }

missing=
for package in $packages; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
done
command -v node >/dev/null || missing="$missing nodejs"
command -v npm >/dev/null || missing="$missing npm"
if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        say "missing:$missing; install them with apt-get, or run this script as root on Debian or Ubuntu"
        exit 1
    fi
    say "installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # a list of words
    { apt-get update -q && apt-get install -yq --no-install-recommends $missing; } >&2
fi

# No lock file: it would name the registry. All that is fetched has its version here; the binary's is wrtc's own.
if ! grep -qs "\"version\": \"$wrtc\"" "$dir/node_modules/@roamhq/wrtc/package.json"; then
    say "installing @roamhq/wrtc $wrtc into $dir"
    mkdir -p "$dir"
    npm install --no-save --no-package-lock --no-audit --no-fund --loglevel=error --prefix "$dir" \
        "@roamhq/wrtc@$wrtc" domexception@4.0.0 webidl-conversions@7.0.0 >&2
fi
