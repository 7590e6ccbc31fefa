#!/bin/sh
# The compiled plane under AddressSanitizer: the differential fuzz of the planes, then the tests with its own thread and real
# sockets (batches, runs, what waits for a frame's end, removal in the middle). `scripts/fuzz-asan.sh [VENV] [FUZZ FLAGS]`, for
# instance `scripts/fuzz-asan.sh .venv --packets 200000`. Ends with AddressSanitizer's report at the first bad access.
set -eu
venv=${1:-.venv}
[ $# -gt 0 ] && shift
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=$(cd "$root" && cd "$(dirname "$venv")" && pwd)/$(basename "$venv")/bin/python

# A copy of what is imported, so that the installed plane stays as it is.
(cd "$root" && cp -r sfu shared bench tests pyproject.toml "$work")
find "$work/sfu/plane" -name 'compiled.*.so' -delete
cd "$work"
"$python" -m pip install -q --disable-pip-version-check --target "$work/build" cython
PYTHONPATH="$work/build" "$python" -m cython -3 sfu/plane/compiled.pyx -o compiled.c
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
cc -shared -fPIC -O1 -g -fno-omit-frame-pointer -fsanitize=address -fno-strict-aliasing -w "-I$include" \
    compiled.c -o "sfu/plane/compiled$suffix"
# Python keeps much until its end, which is no leak; its own allocator would hide errors within its arenas.
export ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc LD_PRELOAD="$(cc -print-file-name=libasan.so)"
cat >sanitized.py <<'PYTHON'
import os
import sys

sys.path.insert(0, os.getcwd())
import sfu.plane.compiled

assert sfu.plane.compiled.__file__.startswith(os.getcwd()), "the installed plane was loaded instead"
print("sanitized plane:", sfu.plane.compiled.__file__, file=sys.stderr)
if sys.argv[1] == "fuzz":
    from tests.sfu.plane.fuzz_twins import main

    del sys.argv[1]
    sys.exit(main())
import pytest

sys.exit(pytest.main(sys.argv[2:]))
PYTHON
"$python" sanitized.py fuzz "$@"
# What was freed is kept from use for a while, so resident memory says nothing here. Paths of fragments and long runs are
# another process' in a network namespace. A report goes past Python to standard error, which pytest must not capture.
PYTHONPATH=$work "$python" sanitized.py tests -q -p no:cacheprovider --capture=sys \
    tests/sfu/plane/test_thread.py tests/sfu/plane/test_narrow_path.py \
    --deselect tests/sfu/plane/test_thread.py::test_peers_that_are_gone_leave_no_memory_behind
