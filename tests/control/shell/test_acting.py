"""What the controller logs of a pool's trouble: the platform's words stay one field."""

from __future__ import annotations

from typing import Any

import pytest

from control.core.scaling_settings import ScalingSettings
from control.errors import PoolError, PoolTrouble
from control.shell.acting import Acting
from control.shell.scaling_metrics import ControlMetrics
from shared.logs import read_fields

SAID = "no space\n2026-11-30 09:00:00,000 INFO    control [drain] cordon sfu=a"


def test_what_a_platform_says_forges_no_line(caplog: pytest.LogCaptureFixture) -> None:
    absent: Any = None
    acting = Acting(absent, absent, ScalingSettings(), metrics=ControlMetrics(scale_out_at=0.65), leads=lambda: 1)
    acting.pool_failed(PoolError(pool="docker", call="launch", kind=PoolTrouble.FAULT, detail=SAID))
    (record,) = caplog.records
    assert record.getMessage().isprintable()
    assert read_fields(record.getMessage())[1]["detail"] == SAID
