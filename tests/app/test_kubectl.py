"""The real kubectl against an API server of canned answers: what it sends, and how it tells a refusal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli import config_map
from app.cli.config_map import ChangedError, ConfigMap
from app.cli.kubectl import Kubectl, KubectlError, Why
from tests.app.canned import Canned, serving

pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not on PATH: the real one is not tried"
)

PATH = "/api/v1/namespaces/twinpool/configmaps/twinpool-policy"
ASKED = "?timeout=20s"
TEXT = "spec: {}\n"


def named(version: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "twinpool-policy", "namespace": "twinpool", "resourceVersion": version},
        "data": {"policy.yaml": "old\n", "README": "words\n"},
    }


def failed(code: int, reason: str, message: str) -> tuple[int, dict[str, Any]]:
    return code, {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


class Server(dict[tuple[str, str], tuple[int, Any]]):
    """Answers of an API server that knows ConfigMaps only; a query is looked at where it is asked for."""

    def __init__(self) -> None:
        kinds = [{"name": "configmaps", "namespaced": True, "kind": "ConfigMap", "verbs": ["get", "patch"]}]
        super().__init__(
            {
                ("GET", "/api"): (200, {"kind": "APIVersions", "versions": ["v1"]}),
                ("GET", "/apis"): (200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}),
                ("GET", "/api/v1"): (
                    200,
                    {"kind": "APIResourceList", "groupVersion": "v1", "resources": kinds},
                ),
                ("GET", PATH): (200, named("7")),
                ("PATCH", PATH): (200, named("8")),
            }
        )

    def get(self, key: tuple[str, str], default: Any = None) -> Any:
        """By the path without its query."""
        return super().get((key[0], key[1].partition("?")[0]), default)


@pytest.fixture
def answers() -> Server:
    return Server()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: Server) -> Iterator[Canned]:
    """A running server, which kubectl knows as its only context."""
    with serving(answers) as found:
        config = tmp_path / "kubeconfig"
        config.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "here",
                    "clusters": [{"name": "here", "cluster": {"server": found.url}}],
                    "contexts": [{"name": "here", "context": {"cluster": "here", "user": "ann"}}],
                    "users": [{"name": "ann", "user": {}}],
                }
            ),
            encoding="utf-8",
        )
        monkeypatch.setenv("KUBECONFIG", str(config))
        monkeypatch.setenv("HOME", str(tmp_path))  # it keeps there what servers can do
        yield found


def read() -> ConfigMap:
    return config_map.read(Kubectl.found(), "twinpool-policy", "twinpool")


def test_a_config_map_is_read(server: Canned) -> None:
    """Name, version and entries as the server has them."""
    found = read()

    assert ("twinpool", "twinpool-policy", "7") == (found.namespace, found.name, found.version)
    assert {"policy.yaml": "old\n", "README": "words\n"} == found.data
    assert "here" == Kubectl.found().asked_context()


@pytest.mark.parametrize(("dry_run", "more"), [(False, ""), (True, "dryRun=All&")])
def test_what_is_sent(server: Canned, dry_run: bool, more: str) -> None:
    """One patch with the version that was read and the one entry, under our field manager."""
    config_map.replace(Kubectl.found(), read(), "policy.yaml", TEXT, dry_run=dry_run)

    sent = [(path, body) for method, path, body in server.asked if method == "PATCH"]
    assert [
        (
            f"{PATH}?{more}fieldManager=twinpool-policy&timeout=20s",
            {"metadata": {"resourceVersion": "7"}, "data": {"policy.yaml": TEXT}},
        )
    ] == sent


def test_a_conflict_is_somebody_elses_edit(server: Canned, answers: Server) -> None:
    """The server refuses the old version: that is told apart from every other failure."""
    held = read()
    answers["PATCH", PATH] = failed(
        409, "Conflict", "Operation cannot be fulfilled: the object has been modified"
    )
    answers["GET", PATH] = (200, named("8"))

    with pytest.raises(ChangedError, match="changed by somebody else"):
        config_map.replace(Kubectl.found(), held, "policy.yaml", TEXT)


@pytest.mark.parametrize(
    ("code", "reason", "why"),
    [
        (404, "NotFound", Why.NOT_FOUND),
        (403, "Forbidden", Why.FORBIDDEN),
        (401, "Unauthorized", Why.NOT_LOGGED_IN),
        (500, "InternalError", Why.OTHER),
    ],
)
def test_a_refusal_has_its_reason(server: Canned, answers: Server, code: int, reason: str, why: Why) -> None:
    """By what kubectl prints of it."""
    answers["GET", PATH] = failed(code, reason, "no words")

    with pytest.raises(KubectlError) as raised:
        read()

    assert why == raised.value.why


def test_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a configuration, and with the address of nobody; log lines of kubectl are left out."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(KubectlError) as raised:
        Kubectl.found().run("get", "configmap", "x", "--server=http://127.0.0.1:9")
    assert Why.NO_ANSWER == raised.value.why
    assert "memcache.go" not in str(raised.value)
    with pytest.raises(KubectlError) as raised:
        Kubectl.found("prod").run("get", "configmap", "x")
    assert Why.NO_CONTEXT == raised.value.why
    assert None is Kubectl.found().asked_context()
