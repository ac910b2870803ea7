"""`twinpool policy apply`: a file into the ConfigMap by a real process, to a controller that mounts it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from app.cli import policy_await
from app.cli.kubectl import Kubectl, KubectlError, Why
from tests.app.canned import NOWHERE, run
from tests.app.in_cluster import KEY, NAME, Cluster, controller
from tests.policies import policy

FIRST = policy(2, 2, guardrails={"maxCutShare": 0.25})
ROOM: dict[str, Any] = {"overload": {"retryAfterSeconds": 7}, "guardrails": {"maxCutShare": 0.25}}
GOOD = policy(2, 2, **ROOM)
SMALL = policy(1, 1, guardrails={"maxCutShare": 0.25})  # half of what runs
ABOVE = policy(2, 2, most=9, guardrails={"maxCutShare": 0.25})  # what only the controller can know
BROKEN = GOOD.replace("spec:", "spec: [")


@pytest.fixture(autouse=True)
def _asked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_await, "ASK_EVERY_S", 0.02)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A ConfigMap with the first policy, and its kubectl on PATH."""
    found = Cluster(tmp_path / "cluster")
    found.install(FIRST)
    monkeypatch.setenv("PATH", found.path)
    config = tmp_path / "kubeconfig"
    config.touch()
    monkeypatch.setenv("KUBECONFIG", str(config))
    return found


@pytest.fixture
def service(cluster: Cluster) -> Iterator[str]:
    """The address of a controller that runs revision 1, the first policy, with two replicas in each pool."""
    with controller(cluster) as url:
        yield url


def file(tmp_path: Path, text: str) -> Path:
    found = tmp_path / "new.yaml"
    found.write_text(text, encoding="utf-8")
    return found


def apply(path: Path, *more: str, url: str = NOWHERE, yes: bool = True) -> Result:
    return run("policy", "apply", str(path), *(["--yes"] if yes else []), *more, url=url)


def words(done: Result) -> str:
    return " ".join(done.stderr.split())


def history(url: str) -> list[tuple[int, str]]:
    found = json.loads(run("policy", "history", "--json", url=url).stdout)["history"]
    return [(item["revision"], item["state"]) for item in found]


# --- what is taken


def test_a_good_edit_is_applied_and_taken(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """The one entry is replaced, the kubelet's swap brings it, and the revision is told; exit code 0."""
    before = cluster.object

    done = apply(file(tmp_path, GOOD), url=service)

    assert 0 == done.exit_code, done.output
    assert "compared with revision 1, which the controller runs:\n" in done.stdout
    assert "spec.overload.retryAfterSeconds: 2 -> 7\n" in done.stdout
    assert "revision 2 is active" == done.stdout.splitlines()[-1]
    assert "applied: the kubelet brings a changed ConfigMap" in words(done)
    assert "within about 90 s" in words(done)
    assert before["data"] | {KEY: GOOD} == cluster.data
    assert [(2, "active"), (1, "superseded")] == history(service)


def test_only_the_config_map_is_touched(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """Kubectl is asked for one ConfigMap, and for one patch, with a field manager of its own."""
    assert 0 == apply(file(tmp_path, GOOD), url=service).exit_code

    (patch,) = cluster.calls("patch")
    assert all(["configmap", NAME] == call[1:3] for call in cluster.calls())
    assert {"get", "patch"} == {call[0] for call in cluster.calls()}
    assert {"--type=merge", "--field-manager=twinpool-policy", "--namespace=twinpool"} <= set(patch)
    assert "8" == cluster.object["metadata"]["resourceVersion"]


def test_a_shadow_is_taken_as_one(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """A revision in the shadow is said to be one: exit code 0, and nothing obeys it."""
    done = apply(file(tmp_path, policy(2, 2, mode="shadow", **ROOM)), url=service)

    assert 0 == done.exit_code
    assert done.stdout.splitlines()[-1].startswith("revision 2 is in the shadow")


def test_what_is_active_is_not_applied_again(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """The very text that acts: exit code 0, nothing is written."""
    done = apply(file(tmp_path, FIRST), url=service)

    assert (0, "nothing to apply: the controller runs this text") == (
        done.exit_code,
        done.stdout.splitlines()[-1],
    )
    assert [] == cluster.calls("patch")


def test_what_is_on_its_way_is_waited_for(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """The ConfigMap has the text and the kubelet is late: nothing is written, the verdict is waited for."""
    cluster.put(cluster.data | {KEY: GOOD})

    done = apply(file(tmp_path, GOOD), "--timeout", "1s", url=service)

    assert 1 == done.exit_code
    assert "it is there already" in words(done)
    assert [] == cluster.calls("patch")


def test_the_outcome_for_programs(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """One object on standard output, whatever the outcome; progress stays on standard error."""
    found = json.loads(apply(file(tmp_path, GOOD), "--json", url=service).stdout)

    assert {
        "file": str(tmp_path / "new.yaml"),
        "sha": sha256(GOOD.encode()).hexdigest(),
        "namespace": "twinpool",
        "config_map": NAME,
        "key": KEY,
        "compared_with": "active_revision",
        "active_revision": 1,
        "outcome": "active",
        "revision": 2,
        "message": None,
        "problem": None,
    } == {key: value for key, value in found.items() if key != "differences"}
    assert ["spec.overload.retryAfterSeconds"] == [item["field"] for item in found["differences"]]
    refused = json.loads(apply(file(tmp_path, ABOVE), "--json", url=service).stdout)
    assert ("refused", 3, "spec.budget.max") == (
        refused["outcome"],
        refused["revision"],
        refused["problem"]["field"],
    )


# --- what is refused before anything is written


def test_an_invalid_file_asks_nobody(tmp_path: Path, cluster: Cluster) -> None:
    """Case C10: every problem with its line, exit code 1, and kubectl is not even started."""
    done = apply(file(tmp_path, BROKEN))

    assert 1 == done.exit_code
    assert f"{tmp_path}/new.yaml:" in done.stderr
    assert "is no valid policy, nothing was applied" in words(done)
    assert [] == cluster.calls()


def test_too_large_a_cut_is_refused_here(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """By the active revision's own maxCutShare, with line and field, before anything is written."""
    done = apply(file(tmp_path, SMALL), url=service)

    assert 1 == done.exit_code
    assert "spec.budget.max: " in done.stderr
    assert "allowLargeChange: 1 to replace revision 1" in words(done)
    assert "the controller would refuse it, nothing was applied" in words(done)
    assert [] == cluster.calls("patch")


def test_a_large_cut_that_is_allowed_is_taken(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """With the number of the revision that it replaces, here and at the controller alike."""
    text = policy(1, 1, guardrails={"maxCutShare": 0.25, "allowLargeChange": 1})

    done = apply(file(tmp_path, text), url=service)

    assert 0 == done.exit_code, done.output


@pytest.mark.parametrize(
    ("metadata", "keeper"),
    [
        ({"annotations": {"argocd.argoproj.io/tracking-id": "twinpool:/ConfigMap:twinpool/x"}}, "Argo CD"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "twinpool"}}, "Flux"),
    ],
)
def test_what_a_gitops_tool_keeps_is_left_to_it(
    tmp_path: Path, cluster: Cluster, service: str, metadata: dict[str, Any], keeper: str
) -> None:
    """An edit that would be taken back is refused, exit code 1; --force applies it until then."""
    cluster.put(cluster.data, **metadata)

    done = apply(file(tmp_path, GOOD), url=service)

    assert 1 == done.exit_code
    assert f"is kept by {keeper}, which would take the edit back" in words(done)
    assert [] == cluster.calls("patch")
    assert 0 == apply(file(tmp_path, GOOD), "--force", url=service).exit_code


def test_what_flux_lets_go_is_applied(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """An object that Flux is told to leave alone is nobody's."""
    cluster.put(
        cluster.data,
        labels={"kustomize.toolkit.fluxcd.io/name": "twinpool"},
        annotations={"kustomize.toolkit.fluxcd.io/reconcile": "disabled"},
    )

    assert 0 == apply(file(tmp_path, GOOD), url=service).exit_code


def test_an_immutable_config_map(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """It is said before anything is asked; exit code 2."""
    cluster.put(cluster.data, immutable=True)

    done = apply(file(tmp_path, GOOD), url=service)

    assert (2, "") == (done.exit_code, done.stdout)
    assert f"ConfigMap twinpool/{NAME} is immutable" in words(done)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"a.yaml": FIRST, "b.yaml": FIRST}, "has 2 entries *.yaml (a.yaml, b.yaml)"),
        ({"README": "words"}, "has 0 entries *.yaml (README)"),
    ],
)
def test_which_entry_is_the_policy(tmp_path: Path, cluster: Cluster, data: dict[str, str], said: str) -> None:
    """Exactly one, as the controller takes it, or the one that --key names; else exit code 2."""
    cluster.put(data)

    done = apply(file(tmp_path, GOOD))

    assert 2 == done.exit_code
    assert said in words(done)
    assert "has no entry c.yaml" in words(apply(file(tmp_path, GOOD), "--key", "c.yaml"))


def test_a_dry_run_writes_nothing(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """The server is asked whether it would take it; the object and the revisions stay."""
    before = cluster.object

    done = apply(file(tmp_path, GOOD), "--dry-run", url=service, yes=False)

    assert 0 == done.exit_code
    assert done.stdout.splitlines()[-1].startswith("nothing was written: the cluster would take it")
    assert "--dry-run=server" in cluster.calls("patch")[0]
    assert before == cluster.object
    assert [(1, "active")] == history(service)


def test_an_edit_of_somebody_else_is_not_undone(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """Changed between the comparison and the write: exit code 1, and their text stays."""
    theirs = policy(2, 2, overload={"retryAfterSeconds": 9})
    cluster.set("meddle.json", {KEY: theirs})

    done = apply(file(tmp_path, GOOD), url=service)

    assert 1 == done.exit_code
    assert "was changed by somebody else in the meantime, nothing was written" in words(done)
    assert theirs == cluster.data[KEY]


@pytest.mark.parametrize(
    "said", ["error: EOF", "Unable to connect to the server: net/http: request canceled (Client.Timeout)"]
)
def test_an_answer_that_is_lost_after_the_write(
    said: str, tmp_path: Path, cluster: Cluster, service: str
) -> None:
    """The text is there, and nobody else wrote it: its verdict is waited for, exit code 0."""
    cluster.set("lost.json", said)

    done = apply(file(tmp_path, GOOD), url=service)

    assert 0 == done.exit_code, done.output
    assert "revision 2 is active" == done.stdout.splitlines()[-1]
    assert "somebody else" not in words(done)


# --- what the controller says


def test_a_refusal_of_the_controller(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """What only it can know: exit code 1 with line and field, and the last good revision goes on acting."""
    done = apply(file(tmp_path, ABOVE), url=service)

    line = ABOVE.splitlines().index("    max: 9") + 1
    assert 1 == done.exit_code
    assert f"{tmp_path}/new.yaml:{line}:1: spec.budget.max: is 9, but this service has 4" in done.stderr
    assert "the last good revision goes on acting" in words(done)
    assert [(2, "refused"), (1, "active")] == history(service)


def test_a_refused_text_is_refused_again_and_the_mended_one_taken(
    tmp_path: Path, cluster: Cluster, service: str
) -> None:
    """The same text once more is told as refused at once, and a good one after it is the next revision."""
    for _ in range(2):
        assert 1 == apply(file(tmp_path, ABOVE), url=service).exit_code
    done = apply(file(tmp_path, GOOD), url=service)

    assert 0 == done.exit_code
    assert "note: the ConfigMap holds another text than the controller runs: it is replaced" in words(done)
    assert 2 == len(cluster.calls("patch"))
    assert [(3, "active"), (2, "refused"), (1, "superseded")] == history(service)


def test_a_text_that_does_not_arrive(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """A kubelet that brings nothing: exit code 1 at the limit, with what was seen and where to look."""
    (cluster.folder / "kubelet_stopped").touch()

    done = apply(file(tmp_path, GOOD), "--timeout", "1s", url=service)

    assert 1 == done.exit_code
    assert f"has not reported sha {sha256(GOOD.encode()).hexdigest()[:12]} within 1s" in words(done)
    assert "its newest revision is 1" in words(done)
    assert f"as a folder, without subPath, at {cluster.mount}" in words(done)


@pytest.mark.long
def test_a_text_that_somebody_replaces(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """While it is waited for, another one is put in its place: that is said at the limit."""
    (cluster.folder / "kubelet_stopped").touch()
    new = file(tmp_path, GOOD)
    code = (
        "import json, pathlib, sys; p = pathlib.Path(sys.argv[1]); "
        "found = json.loads(p.read_text()); found['data']['policy.yaml'] = 'other'; "
        "p.write_text(json.dumps(found))"
    )
    with cli("apply", str(new), "--yes", "--timeout", "3s", url=service) as child:
        assert child.stderr is not None
        while "waiting for the controller" not in child.stderr.readline():
            assert child.poll() is None
        subprocess.run([sys.executable, "-c", code, str(cluster.folder / "config_map.json")], check=True)
        _, errors = child.communicate(timeout=30)

    assert 1 == child.returncode
    assert "has another text by now" in errors


def test_a_service_that_does_not_answer(tmp_path: Path, cluster: Cluster) -> None:
    """The ConfigMap is compared with instead, which is said; applied and not seen is exit code 1."""
    done = apply(file(tmp_path, GOOD), "--timeout", "1s")

    assert 1 == done.exit_code
    assert "note: the service does not say what it runs: no answer from" in words(done)
    assert f"compared with ConfigMap twinpool/{NAME}:\nspec.overload.retry" in done.stdout
    assert "name the service with --url" in words(done)
    assert GOOD == cluster.data[KEY]


# --- kubectl


def test_without_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2, with what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))

    done = apply(file(tmp_path, GOOD))

    assert 2 == done.exit_code
    assert "kubectl is not on PATH mend: install kubectl" in words(done)


def test_without_any_kubeconfig(tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2, and what is missing: there are no contexts that could be listed."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    cluster.set("fails.json", {"get": "The connection to the server localhost:8080 was refused"})

    done = apply(file(tmp_path, GOOD))

    assert 2 == done.exit_code
    assert "there is no kubeconfig (The connection to the server localhost:8080" in words(done)
    assert "mend: set KUBECONFIG to the file" in words(done)


@pytest.mark.parametrize(
    ("url", "words_"),
    [
        ("", "note: neither TWINPOOL_URL nor --url is set: the service is asked at http://127.0.0.1:8000"),
        ("127.0.0.1:9", "note: 127.0.0.1:9 has no scheme: the service is asked at http://127.0.0.1:9"),
    ],
)
def test_what_is_assumed_of_the_address_is_said_first(
    url: str, words_: str, tmp_path: Path, cluster: Cluster
) -> None:
    """Before the cluster is asked, which may refuse for its own reasons."""
    cluster.set("fails.json", {"get": "error: You must be logged in to the server (Unauthorized)"})

    done = apply(file(tmp_path, GOOD), url=url)

    assert 2 == done.exit_code
    assert words(done).startswith(words_)


@pytest.mark.parametrize(
    ("said", "mend"),
    [
        (
            'Error from server (Forbidden): configmaps "twinpool-policy" is forbidden: User "ann" cannot get '
            'resource "configmaps" in API group "" in the namespace "twinpool"',
            "ask for the right",
        ),
        ("error: You must be logged in to the server (Unauthorized)", "log in as for any kubectl command"),
        ('error: context "prod" does not exist', "kubectl config get-contexts"),
        (
            "The connection to the server localhost:8080 was refused - did you specify the right host?",
            "kubectl config get-contexts",
        ),
        ("Unable to connect to the server: dial tcp: lookup x: no such host", "`kubectl version` reaches"),
        ("error: something that nobody has seen yet", "read the message"),
    ],
)
def test_no_access(tmp_path: Path, cluster: Cluster, said: str, mend: str) -> None:
    """Kubectl's own words, and what to do next; exit code 2."""
    cluster.set("fails.json", {"get": said})

    done = apply(file(tmp_path, GOOD))

    assert 2 == done.exit_code
    assert said.removeprefix("error: ") in words(done)
    assert mend in words(done)


def test_no_right_to_change_it(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """Reading is allowed and changing is not: exit code 2, nothing is written."""
    cluster.set("fails.json", {"patch": 'Error from server (Forbidden): configmaps "x" is forbidden'})

    done = apply(file(tmp_path, GOOD), url=service)

    assert 2 == done.exit_code
    assert FIRST == cluster.data[KEY]


@pytest.mark.parametrize("option", [("--namespace", "other"), ("--config-map", "other")])
def test_a_config_map_that_is_not_there(tmp_path: Path, cluster: Cluster, option: tuple[str, str]) -> None:
    """Name and namespace are said, and what to do; exit code 2."""
    done = apply(file(tmp_path, GOOD), *option)

    assert 2 == done.exit_code
    assert "there is no ConfigMap" in words(done)
    assert "install the service first, or name another one with --namespace and --config-map" in words(done)


def test_the_context_is_passed_on(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """Every call to kubectl names the context that was chosen."""
    assert 0 == apply(file(tmp_path, GOOD), "--context", "prod", url=service).exit_code

    assert all("--context=prod" in call for call in cluster.calls())


# --- the question


def test_nobody_to_ask(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """Without a terminal and without --yes nothing is written: exit code 2."""
    done = apply(file(tmp_path, GOOD), url=service, yes=False)

    assert 2 == done.exit_code
    assert "say --yes" in words(done)
    assert [] == cluster.calls("patch")


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_a_person_is_asked(tmp_path: Path, cluster: Cluster, service: str, answer: str, code: int) -> None:
    """On a terminal, with the place that is written to; only a yes applies it."""
    ours, theirs = pty.openpty()
    with cli("apply", str(file(tmp_path, GOOD)), url=service, stdin=theirs) as child:
        os.write(ours, f"{answer}\n".encode())
        _, errors = child.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)

    assert code == child.returncode, errors
    assert f"apply to ConfigMap twinpool/{NAME}, entry {KEY}, context test-cluster? [y/N]" in errors
    assert (1 if code == 0 else 0) == len(cluster.calls("patch"))


def cli(*arguments: str, url: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """The command as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli.main", "policy", *arguments],
        env=os.environ | {"TWINPOOL_URL": url, "COLUMNS": "200"},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("text", ["3", "0s", "2h"])
def test_a_limit_that_is_none(tmp_path: Path, cluster: Cluster, text: str) -> None:
    """A time without a unit, none at all, and too long a one are wrong usage."""
    done = apply(file(tmp_path, GOOD), "--timeout", text)

    assert 2 == done.exit_code
    assert "--timeout" in done.stderr
    assert [] == cluster.calls()


# --- ends for programs, and ends by Ctrl-C


def outcome(done: Result | str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done if isinstance(done, str) else done.stdout)
    assert {"file", "sha", "namespace", "config_map", "key", "outcome", "message", "problem"} < set(found)
    return found


def test_what_is_not_applied_is_told_to_programs(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """One object on standard output, with the first problem where the file has one; exit codes as before."""
    broken, small = (apply(file(tmp_path, text), "--json", url=service) for text in (BROKEN, SMALL))
    cluster.put(cluster.data, immutable=True)
    immutable = apply(file(tmp_path, GOOD), "--json", url=service)
    missing = apply(tmp_path / "none.yaml", "--json", url=service)

    done = [broken, small, immutable, missing]
    assert ["not_applied"] * 4 == [outcome(item)["outcome"] for item in done]
    assert [1, 1, 2, 2] == [item.exit_code for item in done]
    assert "spec.budget.max" == outcome(small)["problem"]["field"]
    assert outcome(broken)["problem"] is not None
    assert f"ConfigMap twinpool/{NAME} is immutable" == outcome(immutable)["message"]
    assert 1 == outcome(immutable)["active_revision"]


def test_nobody_to_ask_is_told_to_programs(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """The comparison is there, and why nothing was written."""
    done = apply(file(tmp_path, GOOD), "--json", url=service, yes=False)

    found = outcome(done)
    assert (2, "not_applied", "nobody can be asked here") == (
        done.exit_code,
        found["outcome"],
        found["message"],
    )
    assert ["spec.overload.retryAfterSeconds"] == [item["field"] for item in found["differences"]]


@pytest.mark.parametrize(
    ("verb", "said"), [("get", "error: x"), ("patch", "Error from server (Forbidden): x")]
)
def test_no_access_is_told_to_programs(
    tmp_path: Path, cluster: Cluster, service: str, verb: str, said: str
) -> None:
    """Kubectl's own words in the document."""
    cluster.set("fails.json", {verb: said})

    done = apply(file(tmp_path, GOOD), "--json", url=service)

    assert (2, "not_applied") == (done.exit_code, outcome(done)["outcome"])
    assert said.removeprefix("error: ") in outcome(done)["message"]


def test_a_closed_input(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """Nobody can be asked there either: exit code 2, and no traceback."""
    line = f'exec "{sys.executable}" -m app.cli.main policy apply "{file(tmp_path, GOOD)}" <&-'
    env = os.environ | {"TWINPOOL_URL": service}
    done = subprocess.run(["/bin/sh", "-c", line], env=env, capture_output=True, text=True, check=False)

    assert 2 == done.returncode
    assert "error: nobody can be asked here" in done.stderr
    assert "Traceback" not in done.stderr


def put_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Cluster, extra: str) -> None:
    """Put a `kubectl` first on PATH that does `extra`, and then what the cluster's does."""
    folder = tmp_path / "first"
    folder.mkdir()
    program = folder / "kubectl"
    program.write_text(f'#!/bin/sh\n{extra}\nexec "{cluster.folder}/bin/kubectl" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_an_answer_that_is_nested_too_deeply(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no ConfigMap: exit code 2, and no traceback."""
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000, encoding="utf-8")
    put_kubectl(tmp_path, monkeypatch, cluster, f'cat "{deep}"; exit 0')

    done = apply(file(tmp_path, GOOD))

    assert 2 == done.exit_code
    assert f"kubectl get configmap {NAME} answered no ConfigMap" in words(done)


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("get", "interrupted, nothing was written"),
        (
            "patch",
            f"interrupted while it was written: ConfigMap twinpool/{NAME} may have the new text, or not",
        ),
    ],
)
def test_an_interrupt_says_what_may_be_there(
    tmp_path: Path, cluster: Cluster, service: str, monkeypatch: pytest.MonkeyPatch, verb: str, said: str
) -> None:
    """Exit code 130: before the write nothing is there; during it nobody knows, and where to see is said."""
    there = tmp_path / "there"
    wait = f'if [ "$1" = {verb} ]; then touch "{there}"; sleep 600; fi'
    put_kubectl(tmp_path, monkeypatch, cluster, wait)

    with cli("apply", str(file(tmp_path, GOOD)), "--yes", "--json", url=service) as child:
        while not there.exists():
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=60)

    assert 130 == child.returncode
    assert f"error: {said}\n" in errors
    assert ("interrupted", said) == (outcome(output)["outcome"], outcome(output)["message"])
    if verb == "patch":
        assert f"`kubectl get configmap {NAME} --namespace twinpool -o yaml` shows its entry {KEY}" in errors


def test_an_interrupt_of_the_wait(tmp_path: Path, cluster: Cluster, service: str) -> None:
    """It is written and not waited for: that is told to programs, too."""
    (cluster.folder / "kubelet_stopped").touch()
    with cli("apply", str(file(tmp_path, GOOD)), "--yes", "--json", url=service) as child:
        assert child.stderr is not None
        while "waiting for the controller" not in child.stderr.readline():
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=60)

    found = outcome(output)
    assert (130, "interrupted") == (child.returncode, found["outcome"])
    assert found["message"].startswith("it is in the ConfigMap and not waited for")


def test_a_lost_answer_after_which_nothing_can_be_read(
    tmp_path: Path, cluster: Cluster, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is there is not known, and is said so; exit code 2."""
    gone = tmp_path / "gone"
    extra = (
        f'if [ -e "{gone}" ] || [ "$1" = patch ]; then touch "{gone}"; '
        'echo "Unable to connect to the server: EOF" >&2; exit 1; fi'
    )
    put_kubectl(tmp_path, monkeypatch, cluster, extra)

    done = apply(file(tmp_path, GOOD), "--json", url=service)

    assert (2, "uncertain") == (done.exit_code, outcome(done)["outcome"])
    assert "may have the new text, or not" in words(done)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            'Error from server (Conflict): Operation cannot be fulfilled on configmaps "timeout-policy"',
            Why.OTHER,
        ),
        ('Error from server (BadRequest): configmaps "my-timeout" is odd', Why.OTHER),
        ("Error from server (Timeout): the server was unable to return a response", Why.NO_ANSWER),
        ("dial tcp 10.0.0.1:443: i/o timeout", Why.NO_ANSWER),
        ("net/http: TLS handshake timeout", Why.NO_ANSWER),
        ("context deadline exceeded (Client.Timeout exceeded while awaiting headers)", Why.NO_ANSWER),
        ("etcdserver: request timed out", Why.NO_ANSWER),
    ],
)
def test_a_name_is_no_reason(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, said: str, why: Why
) -> None:
    """What kubectl says of a ConfigMap with `timeout` in its name is not a time that is over."""
    put_kubectl(tmp_path, monkeypatch, cluster, f"echo '{said}' >&2; exit 1")

    with pytest.raises(KubectlError) as raised:
        Kubectl.found().run("get")

    assert why == raised.value.why
