"""From a `[pool]` table to the pool it names."""

from __future__ import annotations

import pytest

from control.core.pool_settings import read_pool
from control.core.scaling_settings import read_settings
from control.shell.pools import make_pool
from control.shell.pools.docker import DockerPool
from control.shell.pools.kubernetes import KubernetesPool
from control.shell.pools.process import ProcessPool


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ('name = "edge"', ProcessPool),
        ('name = "edge"\nkind = "docker"\nimage = "sluice:1"', DockerPool),
        ('name = "edge"\nkind = "kubernetes"\ndeployment = "sfu"', KubernetesPool),
    ],
)
async def test_each_kind_makes_its_pool_and_connects_to_nothing_yet(table: str, kind: type) -> None:
    pool = make_pool(read_pool(read_settings(f"[pool]\n{table}").pool), fleet="f", environ={"HOME": "/nowhere"})
    assert isinstance(pool, kind)
    assert pool.name == "edge"
    await pool.close()
