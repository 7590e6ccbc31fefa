"""The limit of open files is raised as far as it goes, and a program says when that is not enough."""

from __future__ import annotations

import json
import subprocess

import pytest

from shared.host.child import python
from shared.host.files import OTHERS, share_files

ASKED = """
import json, logging, resource, sys
from shared.host.files import allow_open_files
logging.basicConfig(stream=sys.stderr, format="%(message)s")
soft, hard, players = (int(word) for word in sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
allowed = allow_open_files(logging.getLogger("t"), tag="sfu", most=players)
print(json.dumps([allowed, *resource.getrlimit(resource.RLIMIT_NOFILE)]))
"""


def allowed(soft: int, hard: int, players: int) -> tuple[list[int], str]:
    """The limits afterwards, and what is logged; in another process, because a hard limit can't be raised again."""
    words = [str(each) for each in (soft, hard, players)]
    done = subprocess.run([*python("t")[:2], "-c", ASKED, *words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize(("soft", "hard"), [(256, 2000), (2000, 2000)])
def test_the_soft_limit_is_raised_to_the_hard_one_and_enough_is_not_worth_a_line(soft: int, hard: int) -> None:
    assert allowed(soft, hard, 1936) == ([2000, 2000, 2000], "")


def test_a_hard_limit_too_low_for_the_most_players_is_told_in_one_line_with_the_remedy() -> None:
    limits, log = allowed(256, 1024, 2000)
    assert limits == [1024, 1024, 1024]
    assert log.count("\n") == 1
    assert log.startswith("[sfu] 1024 open files are allowed: enough for about 960 players, and max_players=2000")
    assert "nofile=2064" in log


@pytest.mark.parametrize("limit", [64, 100, 256, 1024, 20_000, 1 << 20])
def test_all_that_ports_may_have_fits_into_the_files_that_are_allowed(limit: int) -> None:
    shares = share_files(limit)
    together = shares.players + shares.http + shares.media + 2 * shares.narrow
    assert min(shares.players, shares.http, shares.media, shares.narrow) >= 1
    assert together <= max(8, limit - OTHERS)
    assert share_files(-1).players > 1_000_000
