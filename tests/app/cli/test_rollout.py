"""When a rollout is over: Serve keeps its former words for a while after it has taken a config."""

from __future__ import annotations

import threading

import pytest
from rich.console import Console

from app.cli import running
from app.cli.rollout import is_over, said
from app.cli.signals import Signals
from app.cli.startup import StartFailed
from deployments.local_cluster import Application, Replicas
from deployments.local_config import ServiceSettings, default_settings

CAUSE = "engine.max_model_len is 9: raise it"
TRACEBACK = f"Traceback (most recent call last):\n  ...\ndeployments.engine.EngineConfigError: {CAUSE}\n"
CONDEMNED = f"speculative pool: {CAUSE}"


def application(status: str, message: str = "", **pools: tuple[str, str]) -> Application:
    """Both pools and the ingress, HEALTHY where nothing else is said."""
    words = {"speculative": ("HEALTHY", ""), "plain": ("HEALTHY", ""), "ingress": ("HEALTHY", "")} | pools
    replicas = {name: Replicas(1, state, text) for name, (state, text) in words.items()}
    return Application(status, message, replicas)


def test_replicas_of_the_former_version_prove_nothing() -> None:
    """Healthy all of them, and Serve has not come to the change yet: not complete, as it was once called."""
    assert not is_over(application("DEPLOYING"), {})


def test_it_is_complete_when_serve_has_nothing_left_to_do() -> None:
    """Also with a pool that is empty by its policy."""
    assert is_over(application("RUNNING"), {})
    empty = application("RUNNING")
    empty.deployments["plain"] = Replicas(0, "HEALTHY", "")
    assert is_over(empty, {})


@pytest.mark.parametrize("status", ["UPDATING", "DEPLOY_FAILED"])
def test_a_wrong_setting_is_known_at_the_first_failure(status: str) -> None:
    """Serve would try it three times."""
    found = application("DEPLOYING", speculative=(status, TRACEBACK))
    with pytest.raises(StartFailed, match=CAUSE) as failed:
        is_over(found, said(application("RUNNING")))
    assert CONDEMNED == str(failed.value)


def test_a_failure_from_before_is_not_this_rollouts() -> None:
    """What mends it would be taken back otherwise; Serve's last word is heard again when it is over."""
    former = application("DEPLOY_FAILED", speculative=("DEPLOY_FAILED", TRACEBACK))
    mended = application("DEPLOYING", speculative=("DEPLOY_FAILED", TRACEBACK))
    assert not is_over(mended, said(former))
    assert is_over(application("RUNNING"), said(former))
    with pytest.raises(StartFailed, match=CAUSE):
        is_over(former, said(former))


def test_any_deployment_may_fail() -> None:
    """The ingress and the controller too, and the building of the application itself."""
    found = application("DEPLOY_FAILED", ingress=("DEPLOY_FAILED", "Traceback:\nOSError: no file\n"))
    with pytest.raises(StartFailed, match="ingress: OSError: no file"):
        is_over(found, {})
    with pytest.raises(StartFailed, match="ImportError: nothing"):
        is_over(Application("DEPLOY_FAILED", "Traceback:\nImportError: nothing", {}), {})


def test_nobody_knows() -> None:
    """Without Serve's word, or with none of a reason."""
    assert not is_over(None, {})
    assert {} == said(None)
    with pytest.raises(StartFailed, match="see the logs"):
        is_over(Application("DEPLOY_FAILED", "", {}), {})


class Cluster:
    """Serve as `serve` sees it: each look takes the next word, and the last one stays."""

    def __init__(self, *words: Application) -> None:
        self.words = list(words)
        self.deployed: list[ServiceSettings] = []

    def application(self) -> Application:
        return self.words.pop(0) if len(self.words) > 1 else self.words[0]

    def redeploy(self, settings: ServiceSettings) -> None:
        self.deployed.append(settings)


class Stop(threading.Event):
    """Set after some waits; a reload is asked for at those that are named."""

    def __init__(self, signals: Signals, reloads: set[int], waits: int) -> None:
        super().__init__()
        self._signals, self._reloads, self._left = signals, reloads, waits
        self._done = 0

    def wait(self, timeout: float | None = None) -> bool:
        self._done += 1
        if self._done in self._reloads:
            self._signals.reload.set()
        return self._done > self._left


def follow(monkeypatch: pytest.MonkeyPatch, cluster: Cluster, *changes: ServiceSettings) -> str:
    """What `serve` prints while these settings are asked for one after the other, a look after each."""
    signals = Signals()
    monkeypatch.setattr(running, "local_cluster", cluster)
    monkeypatch.setattr(running, "check_ray", lambda: None)
    monkeypatch.setattr(running, "LOOK_S", -1.0)
    signals.stop = Stop(signals, set(range(1, len(changes) + 1)), len(changes) + 3)
    console = Console(width=200)
    asked = iter(changes)
    with console.capture() as capture:
        running.until_stopped(settings(0.5), lambda: next(asked), signals, console)
    return capture.get()


def settings(between_chunks_s: float) -> ServiceSettings:
    return default_settings("simulated").model_copy(update={"between_chunks_s": between_chunks_s})


def test_a_rollout_that_fails_late_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look finds the former version healthy, and the failure comes after it."""
    failed = application("DEPLOY_FAILED", speculative=("DEPLOY_FAILED", TRACEBACK))
    cluster = Cluster(application("RUNNING"), application("DEPLOYING"), failed)
    printed = follow(monkeypatch, cluster, settings(1.0))
    assert "rollout complete" not in printed
    assert f"going back to the old ones: {CONDEMNED}" in printed
    assert [1.0, 0.5] == [one.between_chunks_s for one in cluster.deployed]


def test_two_edits_in_a_row_go_back_to_what_has_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first edit is still on its way when the second one fails: neither has shown that it can start."""
    under_way = application("DEPLOYING")
    failed = application("DEPLOY_FAILED", speculative=("DEPLOY_FAILED", TRACEBACK))
    cluster = Cluster(application("RUNNING"), under_way, under_way, under_way, failed)
    printed = follow(monkeypatch, cluster, settings(1.0), settings(2.0))
    assert f"going back to the old ones: {CONDEMNED}" in printed
    assert [1.0, 2.0, 0.5] == [one.between_chunks_s for one in cluster.deployed]
