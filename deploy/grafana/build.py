"""Writes the dashboards: `python deploy/grafana/build.py` makes the `*.json` files here from `dashboards/`."""

from __future__ import annotations

import json
from pathlib import Path

from dashboards import ALL
from model import Dashboard, dashboard_json

HERE = Path(__file__).parent


def rendered(dashboard: Dashboard) -> str:
    """A dashboard's file."""
    return json.dumps(dashboard_json(dashboard), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write all."""
    for name, dashboard in ALL.items():
        (HERE / f"{name}.json").write_text(rendered(dashboard), encoding="utf-8")


if __name__ == "__main__":
    main()
