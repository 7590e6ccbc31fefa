"""The manifests for Kubernetes: rights as the pool uses them, settings, ports and grace as the programs have them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from control.config import ControlConfig
from control.core.pool_settings import KubernetesPoolSettings, read_pool
from control.core.scaling_settings import read_settings
from control.shell.pools import kubernetes as kubernetes_module
from control.shell.pools.kubernetes import KubernetesPool
from router.config import RouterConfig
from sfu.config import SfuConfig
from tests.fakes.kube_api import DEPLOYMENT, NAMESPACE, TOKEN, FakeKube

DEPLOY = Path(__file__).parents[2] / "deploy"
OBJECTS: list[dict[str, Any]] = [
    each for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for each in yaml.safe_load_all(file.read_text())
]
PROGRAMS: dict[str, Any] = {"sluice-sfu": SfuConfig, "sluice-router": RouterConfig, "sluice-control": ControlConfig}


def of(kind: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in OBJECTS if each["kind"] == kind and each["metadata"]["name"] == name]
    return found


def pod_of(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = of("Deployment", name)["spec"]["template"]["spec"]
    return spec


def container_of(name: str) -> dict[str, Any]:
    (container,) = pod_of(name)["containers"]
    assert isinstance(container, dict)
    return container


def ports_of(name: str) -> set[tuple[int, str]]:
    return {(port["containerPort"], port["protocol"]) for port in container_of(name)["ports"]}


def test_all_of_it_is_in_one_namespace() -> None:
    assert {each["metadata"]["namespace"] for each in OBJECTS} == {"sluice"}


async def test_the_controller_may_do_what_the_pool_does_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = of("Role", "sluice-control")["rules"]
    allowed = {(rule["resources"][0], verb) for rule in rules for verb in rule["verbs"]}
    assert [(rule["apiGroups"], rule["resources"], rule.get("resourceNames")) for rule in rules] == [
        (["apps"], ["deployments"], ["sluice-sfu"]),
        ([""], ["pods"], None),
    ]
    assert await _asked_for(tmp_path, monkeypatch) == allowed
    binding = of("RoleBinding", "sluice-control")
    assert binding["roleRef"]["name"] == "sluice-control"
    account = of("ServiceAccount", "sluice-control")["metadata"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]
    assert pod_of("sluice-control")["serviceAccountName"] == account["name"]


async def _asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """What a pool asks the API for in all it can be told to do: resource and verb, as rights name them."""
    monkeypatch.setattr(kubernetes_module, "SETTLE_S", 0.0)
    kube = FakeKube(replicas=4)
    (tmp_path / "kubeconfig").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1", "kind": "Config", "current-context": "here",
                "clusters": [{"name": "c", "cluster": {"server": await kube.start()}}],
                "users": [{"name": "u", "user": {"token": TOKEN}}],
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}],
            }
        )
    )  # fmt: skip
    pool = KubernetesPool(KubernetesPoolSettings(deployment=DEPLOYMENT, kubeconfig=str(tmp_path / "kubeconfig")))
    try:
        first, second, third = sorted(kube.pods)[:3]
        await pool.launch("a")
        kube.settle()
        await pool.list()
        await pool.prefer_victim(first)
        await pool.terminate(first)
        kube.settle()
        await pool.terminate(second)
        kube.pods[third]["status"] = {"phase": "Failed", "reason": "Evicted"}
        await pool.terminate(third)
    finally:
        await pool.close()
        await kube.stop()
    return {_right(method, path.partition("?")[0]) for method, path in kube.calls}


def _right(method: str, path: str) -> tuple[str, str]:
    resource, _, name = path.partition(f"/namespaces/{NAMESPACE}/")[2].partition("/")
    return resource, {"GET": "get" if name else "list"}.get(method, method.lower())


def test_the_grace_is_what_the_sfu_counts_with() -> None:
    environ = {each["name"]: each.get("value") for each in container_of("sluice-sfu")["env"]}
    grace_s = pod_of("sluice-sfu")["terminationGracePeriodSeconds"]
    assert float(environ["SLUICE_GRACE_S"]) == SfuConfig().grace_s
    assert grace_s == SfuConfig().grace_s + 30, "the SFU ends before it is killed"
    assert pod_of("sluice-router")["terminationGracePeriodSeconds"] > RouterConfig().closing_spread_s + 5


def test_ports_are_those_the_programs_listen_on_so_that_two_sfus_never_share_a_machine() -> None:
    sfu, router, control = SfuConfig(), RouterConfig(), ControlConfig()
    assert pod_of("sluice-sfu")["hostNetwork"] is True
    assert ports_of("sluice-sfu") == {(sfu.ws_port, "TCP"), (sfu.udp_port, "UDP"), (sfu.http_port, "TCP")}
    assert ports_of("sluice-router") == {(router.ws_port, "TCP"), (router.http_port, "TCP")}
    assert ports_of("sluice-control") == {(control.http_port, "TCP")}
    service = of("Service", "sluice-router")["spec"]
    assert {port["port"] for port in service["ports"]} == {router.ws_port, router.http_port}
    assert {port["targetPort"] for port in service["ports"]} <= {
        p["name"] for p in container_of("sluice-router")["ports"]
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_setting_is_one_of_the_program(name: str) -> None:
    known = {f"SLUICE_{each.name.upper()}" for each in dataclasses.fields(PROGRAMS[name])}
    given = {each["name"] for each in container_of(name)["env"] if each["name"].startswith("SLUICE_")}
    assert given <= known
    assert "SLUICE_HOST" in given
    # A Service called sluice-router would else put SLUICE_ROUTER_PORT=tcp://… into every pod.
    assert pod_of(name)["enableServiceLinks"] is False


@pytest.mark.parametrize(("name", "setting"), [
    ("sluice-sfu", "SLUICE_SFU"), ("sluice-router", "SLUICE_ROUTER"), ("sluice-control", "SLUICE_CONTROLLER"),
])  # fmt: skip
def test_a_programs_id_is_its_pods_name(name: str, setting: str) -> None:
    source = {each["name"]: each.get("valueFrom") for each in container_of(name)["env"]}
    assert source[setting] == {"fieldRef": {"fieldPath": "metadata.name"}}


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_pod_is_hardened_and_runs_as_the_images_user(name: str) -> None:
    pod, container = pod_of(name), container_of(name)
    assert f"USER {pod['securityContext']['runAsUser']}\n" in (DEPLOY / "Dockerfile").read_text()
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_selectors_find_the_pods_of_their_deployment(name: str) -> None:
    spec = of("Deployment", name)["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"] == {"matchLabels": labels}
    assert labels["app.kubernetes.io/component"] == name.removeprefix("sluice-")
    assert (
        of("Service", "sluice-router")["spec"]["selector"]
        == of("Deployment", "sluice-router")["spec"]["selector"]["matchLabels"]
    )
    for budget in (each for each in OBJECTS if each["kind"] == "PodDisruptionBudget"):
        assert budget["spec"]["selector"] == of("Deployment", budget["metadata"]["name"])["spec"]["selector"]


def test_only_the_controller_says_how_many_sfus_there_are() -> None:
    assert "replicas" not in of("Deployment", "sluice-sfu")["spec"], "each apply would set the pool back to it"
    assert of("Deployment", "sluice-control")["spec"]["replicas"] == 2
    assert not any(each["kind"] == "HorizontalPodAutoscaler" for each in OBJECTS)


def test_the_controller_reads_settings_that_name_the_sfus_deployment() -> None:
    settings = read_settings(of("ConfigMap", "sluice-scaling")["data"]["scaling.toml"])
    pool = read_pool(settings.pool)
    assert isinstance(pool, KubernetesPoolSettings)
    assert pool.deployment == of("Deployment", "sluice-sfu")["metadata"]["name"]
    container = container_of("sluice-control")
    (mount,) = container["volumeMounts"]
    assert f"{mount['mountPath']}/scaling.toml" in container["args"]
    assert pod_of("sluice-control")["volumes"][0]["configMap"]["name"] == "sluice-scaling"
