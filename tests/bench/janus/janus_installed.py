"""Tests that run Janus are left out where it is not installed, but never without a word in continuous integration."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.fakes.needed import need_installed


def need_janus() -> None:
    """Skip the test without Janus; fail it where `CI` is set, unless `SLUICE_WITHOUT_JANUS` says there is none."""
    if shutil.which("janus") is not None:
        return
    if os.environ.get("CI") and not os.environ.get("SLUICE_WITHOUT_JANUS"):
        pytest.fail("Janus is missing here: apt-get install janus, or set SLUICE_WITHOUT_JANUS=1")
    need_installed(False, "Janus", "apt-get install janus", also_in_ci=False)
