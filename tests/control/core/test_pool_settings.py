"""The `[pool]` table: every key checked, every error with the line it stands on."""

from __future__ import annotations

import pytest

from control.core.pool_settings import (
    DockerPoolSettings,
    KubernetesPoolSettings,
    ProcessPoolSettings,
    node_name,
    read_pool,
)
from control.core.scaling_settings import read_settings
from shared.errors import BadSetting


def read(text: str) -> object:
    return read_pool(read_settings(text).pool)


def test_a_file_without_the_table_means_local_processes() -> None:
    assert read("") == ProcessPoolSettings()


def test_each_kind_has_its_own_keys() -> None:
    docker = read(
        '[pool]\nkind = "docker"\nimage = "sluice:1"\nstop_grace_s = 60\nflags = ["--gso=false"]\nenv = {A = "b"}'
    )
    assert isinstance(docker, DockerPoolSettings)
    assert (docker.image, docker.stop_grace_s, docker.flags, dict(docker.env)) == (
        "sluice:1", 60.0, ("--gso=false",), {"A": "b"},
    )  # fmt: skip
    kubernetes = read('[pool]\nkind = "kubernetes"\ndeployment = "sfu"\nnamespace = "calls"\npage = 10')
    assert kubernetes == KubernetesPoolSettings(deployment="sfu", namespace="calls", page=10)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('kind = "vm"', "scaling.toml:2 pool.kind"),
        ('kind = "docker"', "pool.image"),
        ('kind = "kubernetes"', "pool.deployment"),
        ('kind = "docker"\nimage = 7', "scaling.toml:3 pool.image: must be text in quotes, not 7"),
        ('kind = "docker"\nimage = "a"\nimagee = "b"', "did you mean 'image'"),
        ('deployment = "sfu"', "scaling.toml:2 pool.deployment"),
        ('name = "SFU"', "pool.name"),
        ('ports = "9-8"', "pool.ports"),
        ('ports = "70000-70010"', "pool.ports"),
        ('ports = "many"', "pool.ports"),
        ('routers = ["http://a"]', "pool.routers"),
        ('routers = "ws://a"', "pool.routers"),
        ("stop_grace_s = 0", "pool.stop_grace_s"),
        ("stop_grace_s = true", "pool.stop_grace_s"),
        ("timeout_s = -1", "pool.timeout_s"),
        ("timeout_s = nan", "pool.timeout_s"),
        ("env = {A = 1}", "pool.env"),
        ('kind = "kubernetes"\ndeployment = "a"\npage = 0', "pool.page"),
    ],
)
def test_what_cant_be_used_is_named_with_its_key_and_line(body: str, said: str) -> None:
    with pytest.raises(BadSetting) as bad:
        read(f"[pool]\n{body}")
    assert said in str(bad.value)


def test_a_requests_node_has_one_name_and_two_requests_have_two() -> None:
    names = {node_name(fleet="f", pool="sfu", request=request) for request in ("a", "b", "a")}
    assert len(names) == 2
    assert node_name(fleet="f", pool="sfu", request="a") != node_name(fleet="g", pool="sfu", request="a")
    assert all(name.startswith("sfu-") and len(name) <= 43 for name in names)
