"""The Helm chart: a schema for its values, valid Kubernetes, and plain manifests that are what it renders."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "sluice"
PLAIN = ROOT / "deploy" / "kubernetes"
RELEASES = ("1.30", "1.36")
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())


def check(manifest: str, release: str) -> list[dict[str, Any]]:
    """The objects, of which each is valid in this release; the Prometheus operator's kinds have no schema there."""
    objects = [each for each in yaml.safe_load_all(manifest) if each]
    for each in objects:
        if not each["apiVersion"].startswith("monitoring.coreos.com/"):
            kubernetes_validate.validate(each, release, strict=True)
    return objects


@pytest.fixture(scope="module")
def helm() -> str:
    """A Helm, which may have to be fetched."""
    answer = subprocess.run(
        [ROOT / "scripts" / "helm.sh"],
        env={"PATH": "/usr/bin:/bin", "PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def render(helm: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [helm, "template", "sluice", str(CHART), "--namespace", "calls", *flags]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["control", "router", "sfu"])
def test_the_plain_manifests_are_valid(name: str, release: str) -> None:
    assert check((PLAIN / f"{name}.yaml").read_text(), release)


def test_a_manifest_that_is_wrong_is_refused() -> None:
    wrong = (PLAIN / "sfu.yaml").read_text().replace("hostNetwork: true", "hostNetwrk: true")
    with pytest.raises(kubernetes_validate.ValidationError):
        check(wrong, RELEASES[0])


def test_the_default_values_keep_to_their_schema() -> None:
    jsonschema.validate(VALUES, SCHEMA)


def test_every_value_has_a_schema_and_no_schema_is_left_over() -> None:
    def keys(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> None:
        known = set(schema["properties"]) - ({"global"} if not path else set())
        assert known == set(values), path or "the root"
        assert schema["additionalProperties"] is False
        for key, value in values.items():
            if "properties" in schema["properties"][key]:
                keys(value, schema["properties"][key], f"{path}.{key}")

    keys(VALUES, SCHEMA)


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("sfu", "graceS", 5),
        ("sfu", "announcedFrom", "externalIP"),
        ("redis", "url", "http://redis"),
        ("router", "announcedWs", "https://calls.example.org"),
        ("router", "replica", 3),
    ],
)
def test_a_slip_in_the_values_is_refused(part: str, key: str, value: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(VALUES | {part: VALUES[part] | {key: value}}, SCHEMA)


def test_the_chart_has_the_dashboards_that_are_shipped() -> None:
    shipped = {file.name for file in (ROOT / "deploy" / "grafana").glob("*.json")}
    assert {file.name for file in (CHART / "dashboards").iterdir()} == shipped
    assert all(file.resolve().parent == ROOT / "deploy" / "grafana" for file in (CHART / "dashboards").iterdir())


@pytest.mark.slow
def test_the_plain_manifests_are_what_the_chart_renders(tmp_path: Path, helm: str) -> None:
    environ = {"PATH": f"{Path(helm).parent}:/usr/bin:/bin"}
    subprocess.run([ROOT / "scripts" / "render-manifests.sh", tmp_path], env=environ, check=True)
    for file in PLAIN.glob("*.yaml"):
        assert (tmp_path / file.name).read_text() == file.read_text(), "run scripts/render-manifests.sh"


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_all_that_can_be_switched_on_is_valid(helm: str, release: str) -> None:
    flags = ("--set", "monitoring.enabled=true,monitoring.dashboards=true,redis.secretName=redis,sfu.hostNetwork=false")
    answer = render(helm, *flags, "--set-json", 'sfu.tolerations=[{"operator": "Exists"}]')
    objects = check(answer.stdout, release)
    assert {each["kind"] for each in objects} >= {"ServiceMonitor", "PodMonitor", "ConfigMap"}
    boards = [each for each in objects if "-dashboard-" in each["metadata"]["name"]]
    assert len(boards) == 4
    for board in boards:
        ((name, text),) = board["data"].items()
        assert json.loads(text) == json.loads((CHART / "dashboards" / name.removeprefix("sluice-")).read_text())
    (sfu,) = [each for each in objects if each["kind"] == "Deployment" and each["metadata"]["name"] == "sluice-sfu"]
    pod = sfu["spec"]["template"]["spec"]
    assert "hostNetwork" not in pod
    assert {(each["hostPort"], each["protocol"]) for each in pod["containers"][0]["ports"] if "hostPort" in each} == {
        (7101, "UDP"),
        (7101, "TCP"),
    }
    assert "replicas" not in sfu["spec"]


@pytest.mark.slow
def test_without_a_controller_the_chart_says_how_many(helm: str) -> None:
    flags = ("--set", "control.enabled=false,sfu.replicas=5", "--set-string", "sfu.addressCommand=echo 192.0.2.7")
    objects = check(render(helm, *flags).stdout, RELEASES[-1])
    assert not any(each["kind"] == "Role" for each in objects)
    (sfu,) = [each for each in objects if each["kind"] == "Deployment" and each["metadata"]["name"] == "sluice-sfu"]
    assert sfu["spec"]["replicas"] == 5
    container = sfu["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["sh", "-c"]
    assert "SLUICE_ANNOUNCED_IP" not in {each["name"] for each in container["env"]}, "the command says it"


@pytest.mark.slow
def test_helm_itself_refuses_a_value_that_the_schema_refuses(helm: str) -> None:
    answer = render(helm, "--set", "sfu.graceS=5")
    assert answer.returncode != 0
    assert "graceS" in answer.stderr
