#!/bin/sh
# Measures this machine with `sluice capacity` and puts file, plot and their text into docs/autoscaling.md.
# SLUICE: the command, by default `.venv/bin/sluice`; further arguments go to `sluice capacity`.
set -eu
cd "$(dirname "$0")/.."
sluice=${SLUICE:-.venv/bin/sluice}
first=
[ "$(id -u)" != 0 ] || first="chrt -r 5"
# shellcheck disable=SC2086 # both are commands with arguments
$first $sluice capacity --out docs/capacity-example.env --out docs/capacity-example.toml \
    --plot docs/images/capacity.png "$@"
page=docs/autoscaling.md
{
    sed '/<!-- capacity-example.env -->/q' $page
    echo '```sh'
    cat docs/capacity-example.env
    echo '```'
    sed -n '/<!-- end of capacity-example.env -->/,$p' $page
} >$page.new
mv $page.new $page
