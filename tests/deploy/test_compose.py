"""docker-compose.yml: up with nothing set, hardened, and what its services share is what the programs read."""

from __future__ import annotations

import dataclasses
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.errors import PARTS
from client_sim.config import BotsConfig
from router.config import RouterConfig
from router.core.ice_servers import IceSettings
from sfu.config import SfuConfig

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text()
FILE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, Any] = FILE["services"]
SFUS = {name: service for name, service in SERVICES.items() if name.startswith("sfu-")}
SCRIPTED = {name: service for name, service in SFUS.items() if name != "sfu-more"}
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
OF_RUN = {"SECRET_FILE", "ADDRESS", "TLS_NAME", "PUBLISHED_WS", "PUBLISHED_HTTP", "STATE", "VERSION"}
"""What `deploy/run.sh`, `sfu.sh` and the command line itself read."""


def run_script(tmp_path: Path, *command: str, **environ: str) -> dict[str, str]:
    """The environment in which `deploy/run.sh` runs a command."""
    answer = subprocess.run(
        [ROOT / "deploy" / "run.sh", *(command or ("env",))],
        env={"PATH": "/usr/bin:/bin", "SLUICE_SECRET_FILE": str(tmp_path / "secret"), **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split("=", 1) for line in answer.stdout.splitlines())


def test_nothing_has_to_be_set() -> None:
    for name, default in re.findall(r"\$\{(\w+)(.*?)\}", TEXT):
        assert default.startswith(":-"), f"{name} must be set, or is not the same in both spellings of compose"
        assert "$" not in default, "docker-compose 1.29 knows no default within a default"


def test_ports_are_open_where_browsers_reach_them_and_on_loopback_otherwise() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(published) == 4 + 2 * 4
    assert all(port.startswith("${SLUICE_ADDRESS:-127.0.0.1}:") for port in published)
    inside = [port.rpartition("}:")[2].partition("/")[0].split(":") for port in published if "710" in port]
    assert all(outer == inner for outer, inner in inside), "an SFU announces the port that it listens on"


@pytest.mark.parametrize("name", SERVICES)
def test_each_container_is_hardened_and_comes_back(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["cap_drop"] == ["ALL"]
    assert service["init"] is True
    assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}
    # `on-failure` leaves down what ended with status 0 because the host was shut down: right for a passing peak.
    assert service["restart"] == ("on-failure" if name == "sfu-more" else "unless-stopped")
    if name not in ("bots", "sfu-more"):
        assert service["healthcheck"]["test"][:2] == ["CMD", "sluice-healthy"]


def test_every_sfu_that_comes_back_runs_through_the_script_that_keeps_a_drain() -> None:
    assert len(SCRIPTED) == 4
    assert all(each["entrypoint"] == ["sluice-run", "sluice-sfu"] for each in SCRIPTED.values())
    assert all("command" not in each for each in SCRIPTED.values())


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "redis"])
def test_every_setting_is_one_of_the_program_or_of_its_scripts(name: str) -> None:
    config: Any = RouterConfig if name.startswith("router") else BotsConfig if name == "bots" else SfuConfig
    known = {each.name.upper() for part in (config, IceSettings) for each in dataclasses.fields(part)}
    given = {key.removeprefix("SLUICE_") for key in SERVICES[name]["environment"]}
    assert given <= known | OF_RUN
    both = {"VERSION", "SECRET_FILE"}  # the script makes the file, the program reads it
    assert not (OF_RUN - both) & known, "a program would read what is meant for a script"
    assert "VERSION" in given


def test_a_grace_is_the_same_number_for_docker_and_for_the_sfu() -> None:
    for service in SFUS.values():
        assert service["stop_grace_period"] == service["environment"]["SLUICE_GRACE_S"] + "s"
    assert SfuConfig().grace_s == 3600


def test_the_secret_is_made_once(tmp_path: Path) -> None:
    run_script(tmp_path)
    made = (tmp_path / "secret").read_text()
    run_script(tmp_path)
    assert len(made) == 48
    assert (tmp_path / "secret").read_text() == made
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]


def test_programs_that_start_together_agree_on_the_secret(tmp_path: Path) -> None:
    script, file = shlex.quote(str(ROOT / "deploy" / "run.sh")), tmp_path / "secret"
    together = f"for n in 1 2 3 4 5 6 7 8; do SLUICE_SECRET_FILE={file} {script} cat {file} & done; wait"
    told = subprocess.run(["sh", "-c", together], capture_output=True, text=True, check=True).stdout
    assert told == file.read_text() * 8


def test_a_secret_that_is_given_is_kept_out_of_the_file(tmp_path: Path) -> None:
    assert run_script(tmp_path, SLUICE_SECRET="x" * 32)["SLUICE_SECRET"] == "x" * 32
    assert not (tmp_path / "secret").exists()


@pytest.mark.parametrize(
    ("environ", "announced", "page", "open_to_all"),
    [
        ({}, "ws://127.0.0.1:7001", "http://127.0.0.1:8080", "true"),
        ({"SLUICE_ADDRESS": "192.0.2.7"}, "ws://192.0.2.7:7001", "http://192.0.2.7:8080", "false"),
        (
            {"SLUICE_ADDRESS": "192.0.2.7", "SLUICE_TLS_NAME": "calls.example.org"},
            "wss://calls.example.org:8001",
            "https://calls.example.org:9080",
            "false",
        ),
    ],
)
def test_bind_address_and_tls_follow_from_the_address_that_browsers_use(
    environ: dict[str, str], announced: str, page: str, open_to_all: str, tmp_path: Path
) -> None:
    seen = run_script(tmp_path, SLUICE_PUBLISHED_WS="7001", SLUICE_PUBLISHED_HTTP="8080", **environ)
    assert (seen["SLUICE_ANNOUNCED_WS"], seen["SLUICE_ANNOUNCED_HTTP"]) == (announced, page)
    assert (seen["SLUICE_DEV_TOKENS"], seen["SLUICE_API_OPEN"]) == (open_to_all, open_to_all)
    assert seen["SLUICE_ANNOUNCED_IP"] == environ.get("SLUICE_ADDRESS", "127.0.0.1")


def test_what_is_set_by_hand_stays(tmp_path: Path) -> None:
    assert run_script(tmp_path, SLUICE_API_OPEN="false")["SLUICE_API_OPEN"] == "false"
    assert (
        run_script(tmp_path, SLUICE_PUBLISHED_WS="1", SLUICE_ANNOUNCED_WS="wss://x")["SLUICE_ANNOUNCED_WS"] == "wss://x"
    )


def test_the_image_of_an_sfu_has_only_what_an_sfu_needs() -> None:
    """Its size is measured by `make test-compose`, which builds it."""
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert "apt-get" not in last
    assert "COPY --from=venv /opt/venv /opt/venv" in last
    assert "pip uninstall -y setuptools pip" in DOCKERFILE
    assert "\nARG EXTRAS=\n" in DOCKERFILE, "no extra unless one is asked for"
    assert SERVICES["bots"]["build"]["args"]["EXTRAS"] == "bots"
    assert not any("EXTRAS" in service["build"]["args"] for name, service in SERVICES.items() if name != "bots")
    assert re.search(r"^USER [1-9]\d*$", last, re.MULTILINE), "Kubernetes can't see of a name that it is not root"


def test_routers_and_sfus_and_operators_load_nothing_that_is_optional() -> None:
    programs = "cli.main, router.command, sfu.command, cli.status, cli.token, cli.drain, cli.exit, cli.control"
    code = f"import sys, {programs}; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not set(PARTS) & set(answer.stdout.split())
