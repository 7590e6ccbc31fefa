#!/bin/sh
# The differential fuzz of the planes with the compiled one under AddressSanitizer: `scripts/fuzz-asan.sh [VENV] [FUZZ FLAGS]`,
# for instance `scripts/fuzz-asan.sh .venv --packets 200000`. Ends with AddressSanitizer's report at the first bad access.
set -eu
venv=${1:-.venv}
[ $# -gt 0 ] && shift
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=$(cd "$root" && cd "$(dirname "$venv")" && pwd)/$(basename "$venv")/bin/python

# A copy of what is imported, so that the installed plane stays as it is.
(cd "$root" && cp -r sfu shared tests pyproject.toml "$work")
find "$work/sfu/plane" -name 'compiled.*.so' -delete
cd "$work"
"$python" -m pip install -q --disable-pip-version-check --target "$work/build" cython
PYTHONPATH="$work/build" "$python" -m cython -3 sfu/plane/compiled.pyx -o compiled.c
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
cc -shared -fPIC -O1 -g -fno-omit-frame-pointer -fsanitize=address -fno-strict-aliasing -w "-I$include" \
    compiled.c -o "sfu/plane/compiled$suffix"
# Python keeps much until its end, which is no leak; its own allocator would hide what lies in its arenas.
export ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc LD_PRELOAD="$(cc -print-file-name=libasan.so)"
"$python" - "$@" <<'PYTHON'
import os
import sys

sys.path.insert(0, os.getcwd())
import sfu.plane.compiled

assert sfu.plane.compiled.__file__.startswith(os.getcwd()), "the installed plane was loaded instead"
print("sanitized plane:", sfu.plane.compiled.__file__, file=sys.stderr)
from tests.sfu.fuzz_twins import main

sys.exit(main())
PYTHON
