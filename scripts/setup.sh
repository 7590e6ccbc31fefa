#!/bin/sh
# Makes the virtual environment VENV and installs Sluice into it, editable: `setup.sh VENV run|dev`.
set -eu
venv=$1
kind=$2
python=${PYTHON:-python3}

say() { echo "sluice: $*" >&2; }

as_root() { # Debian and Ubuntu leave parts of Python out; only root can add them.
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
}

if ! command -v "$python" >/dev/null; then
    as_root || { say "$python is missing; install Python 3.11 or newer, or set PYTHON"; exit 1; }
    apt-get update -q && apt-get install -yq --no-install-recommends python3 python3-venv
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    say "$("$python" --version) is too old; Sluice needs 3.11 or newer: make PYTHON=/path/to/python3.11 …"
    exit 1
}
if [ ! -x "$venv/bin/pip" ]; then
    if ! "$python" -c 'import ensurepip' 2>/dev/null; then
        as_root || { say "Python's venv module is missing; install it: apt-get install python3-venv"; exit 1; }
        apt-get update -q && apt-get install -yq --no-install-recommends python3-venv
    fi
    "$python" -m venv "$venv"
fi
# The data plane is compiled: that takes a C compiler and Python's headers. Without them the SFU runs its slow reference.
headers="$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"
if ! command -v cc >/dev/null || [ ! -e "$headers" ]; then
    if as_root; then
        apt-get update -q && apt-get install -yq --no-install-recommends gcc libc6-dev python3-dev
    else
        say "no C compiler or no Python headers: SFUs will run the slow reference plane; install gcc and python3-dev, then make clean"
    fi
fi
if [ "$kind" = dev ]; then
    "$venv/bin/pip" install -q --disable-pip-version-check -e '.[dev]'
    touch "$venv/.installed-run"
else
    "$venv/bin/pip" install -q --disable-pip-version-check -e '.[bots]'
fi
touch "$venv/.installed-$kind"
