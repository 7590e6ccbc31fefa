#!/bin/sh
# Writes deploy/kubernetes/ from the chart, for those who apply plain manifests: render-manifests.sh [FOLDER]
set -eu
cd "$(dirname "$0")/.."
to=${1:-deploy/kubernetes}
helm=$(scripts/helm.sh)
for name in control router sfu; do
    {
        echo "# Made by scripts/render-manifests.sh from deploy/helm/sluice: change the chart, not this file."
        "$helm" template sluice deploy/helm/sluice --namespace sluice --show-only "templates/$name.yaml" 2>/dev/null
    } >"$to/$name.yaml"
done
