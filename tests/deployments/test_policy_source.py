"""What is seen of a policy file, however it is written."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from deployments.policy_source import PolicySource, Seen
from tests.deployments.kubelet import ConfigMapMount, config_map

__all__ = ["config_map"]

STAYS = "the last good policy stays"
# Swaps the content 200 times, each text whole only with its end, and says so.
SWAP = """
import sys
from pathlib import Path
from tests.deployments.kubelet import ConfigMapMount
mount = ConfigMapMount(Path(sys.argv[1]))
for number in range(200):
    mount.publish({"policy.yaml": f"begin {number}\\n" + "x: y\\n" * 5000 + f"end {number}\\n"})
    if number == 0:
        print("started", flush=True)
"""


def text(content: str) -> Seen:
    return Seen(content, sha256(content.encode()).hexdigest(), None)


def polls(source: PolicySource, count: int) -> list[Seen | None]:
    return [source.poll() for _ in range(count)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text("a: 1\n", encoding="utf-8")
    return path


def test_the_first_content_is_taken_at_once(file: Path) -> None:
    """A start does not wait for a second look, and the same content is no news."""
    assert [text("a: 1\n"), None, None] == polls(PolicySource(file), 3)


def test_a_change_is_seen_when_two_polls_agree(file: Path) -> None:
    """A new content is taken at the second poll that finds it, and once."""
    source = PolicySource(file)
    source.poll()
    file.write_text("a: 2\n", encoding="utf-8")
    assert [None, text("a: 2\n"), None] == polls(source, 3)


def test_the_content_counts_and_not_the_time(file: Path) -> None:
    """A touched file is no news; a change that keeps size and time is."""
    source = PolicySource(file)
    source.poll()
    before = file.stat()
    os.utime(file, (1.0, 1.0))
    assert [None, None] == polls(source, 2)
    file.write_text("a: 3\n", encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [None, text("a: 3\n")] == polls(source, 2)


def test_a_file_that_is_being_written_is_waited_for(file: Path) -> None:
    """Case C10: while a file grows from poll to poll none of its halves is taken."""
    source = PolicySource(file)
    source.poll()
    seen = []
    with file.open("w", encoding="utf-8") as writing:
        for piece in ("", "b:", " 1\n", "c: 2\n"):
            writing.write(piece)
            writing.flush()
            seen.append(source.poll())
    assert [None, None, None, None] == seen
    assert [text("b: 1\nc: 2\n"), None] == polls(source, 2)


@pytest.mark.parametrize("bad", ["", "spec:\n  budget: {min: 4, m"])
def test_an_empty_and_a_half_written_file_are_seen_once(file: Path, bad: str) -> None:
    """Case C10: a bad content that stays is seen once, and the next good one is picked up."""
    source = PolicySource(file)
    source.poll()
    file.write_text(bad, encoding="utf-8")
    assert [None, text(bad), None, None] == polls(source, 4)
    file.write_text("a: 2\n", encoding="utf-8")
    assert [None, text("a: 2\n"), None] == polls(source, 3)


@pytest.mark.parametrize("name", ["policy.yaml", "."])
def test_the_kubelets_swap_is_seen(config_map: ConfigMapMount, name: str) -> None:
    """Case C10: each swap of a mounted ConfigMap is seen once, by the file's name and by the folder's."""
    config_map.publish({"policy.yaml": "a: 1\n"})
    source = PolicySource(config_map.folder / name)
    assert [text("a: 1\n"), None] == polls(source, 2)
    config_map.publish({"policy.yaml": "a: 2\n"})
    assert [None, text("a: 2\n"), None] == polls(source, 3)
    config_map.publish({"policy.yaml": "a: 2\n"})
    assert [None, None, None] == polls(source, 3)
    config_map.publish({"policy.yaml": ""})
    assert [None, text(""), None] == polls(source, 3)
    config_map.publish({"policy.yaml": "a: 3\n"})
    assert [None, text("a: 3\n"), None] == polls(source, 3)
    assert source.vanished == 0


def test_a_reader_beside_the_kubelet_sees_whole_files_only(tmp_path: Path) -> None:
    """Case C10: whatever the moment of a swap, a text is one that was published, and the last one is seen."""
    folder = tmp_path / "volume"
    with subprocess.Popen(
        [sys.executable, "-c", SWAP, str(folder)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "started\n"
        source = PolicySource(folder / "policy.yaml")
        seen = [source.poll()]
        while child.poll() is None:
            seen.append(source.poll())
    seen += polls(source, 2)
    texts = [one.text for one in seen if one is not None and one.text is not None]
    for found in texts:
        number = found.partition("\n")[0].removeprefix("begin ")
        assert f"begin {number}\n" + "x: y\n" * 5000 + f"end {number}\n" == found
    assert texts[-1].startswith("begin 199\n")


def test_what_vanishes_under_the_reader_is_a_problem_at_the_third_poll(config_map: ConfigMapMount) -> None:
    """A name with nothing behind it may be a swap: counted at once, said after three polls in a row."""
    config_map.publish({"policy.yaml": "a: 1\n"})
    path = config_map.folder / "policy.yaml"
    source = PolicySource(path)
    source.poll()
    config_map.lose_data()
    assert [None, None] == polls(source, 2)
    problem = f"{path}: for 3 polls a name with no file behind it: write it anew, {STAYS}"
    assert [Seen(None, None, problem), None] == polls(source, 2)
    assert source.vanished == 4
    config_map.publish({"policy.yaml": "a: 1\n"})
    assert [None, text("a: 1\n"), None] == polls(source, 3)
    assert source.vanished == 4


def test_swaps_that_are_met_now_and_then_are_no_problem(config_map: ConfigMapMount) -> None:
    """Only polls in a row count: a file that was read in between was there."""
    config_map.publish({"policy.yaml": "a: 1\n"})
    source = PolicySource(config_map.folder / "policy.yaml")
    source.poll()
    for _ in range(3):
        config_map.lose_data()
        assert [None, None] == polls(source, 2)
        config_map.publish({"policy.yaml": "a: 1\n"})
        assert [None, None] == polls(source, 2)
    assert source.vanished == 6


def test_a_file_that_vanishes_at_the_start_is_retried(config_map: ConfigMapMount) -> None:
    """A swap at the very first poll costs one poll, not a problem."""
    config_map.publish({"policy.yaml": "a: 1\n"})
    config_map.lose_data()
    source = PolicySource(config_map.folder / "policy.yaml")
    assert source.poll() is None
    config_map.publish({"policy.yaml": "a: 1\n"})
    assert source.poll() == text("a: 1\n")


def test_a_file_that_is_gone(file: Path) -> None:
    """A removed file is a problem and its return is news, though the content is the same."""
    source = PolicySource(file)
    source.poll()
    file.unlink()
    gone = Seen(None, None, f"{file}: the file is gone: put it back, {STAYS}")
    assert [None, gone, None] == polls(source, 3)
    file.write_text("a: 1\n", encoding="utf-8")
    assert [None, text("a: 1\n"), None] == polls(source, 3)
    assert PolicySource(file.parent / "none.yaml").poll() is not None


def test_an_editors_rename_is_one_change(file: Path) -> None:
    """A poll between an editor's two renames says nothing of a file that is gone."""
    source = PolicySource(file)
    source.poll()
    file.rename(file.with_suffix(".bak"))
    assert source.poll() is None
    file.write_text("a: 2\n", encoding="utf-8")
    assert [None, text("a: 2\n")] == polls(source, 2)


def test_a_folder_holds_exactly_one_policy(tmp_path: Path) -> None:
    """None and several are problems that name folder and files; hidden and other files do not count."""
    source = PolicySource(tmp_path)
    none = f"{tmp_path}: no *.yaml in this folder: put the policy file there"
    assert [Seen(None, None, none), None] == polls(source, 2)
    for name in ("b.yaml", "notes.txt", ".hidden.yaml"):
        (tmp_path / name).write_text("b: 1\n", encoding="utf-8")
    assert [None, text("b: 1\n")] == polls(source, 2)
    (tmp_path / "a.yaml").write_text("a: 1\n", encoding="utf-8")
    two = f"{tmp_path}: 2 *.yaml in this folder (a.yaml, b.yaml): leave one, or name the file itself"
    assert [None, Seen(None, None, two), None] == polls(source, 3)


def test_too_large(file: Path) -> None:
    """One mebibyte is read, one byte more is a problem."""
    source = PolicySource(file)
    file.write_bytes(b"#" * (1 << 20))
    assert source.poll() == text("#" * (1 << 20))
    file.write_bytes(b"#" * ((1 << 20) + 1))
    problem = f"{file}: larger than 1048576 bytes: this is no policy file"
    assert [None, Seen(None, None, problem), None] == polls(source, 3)


def test_not_utf8(file: Path) -> None:
    """Bytes that are no text are refused with the line and the byte."""
    content = b"a: 1\nb: caf\xe9\n"
    file.write_bytes(content)
    problem = f"{file}: line 2 is not UTF-8 (byte 0xe9): save it as UTF-8"
    assert PolicySource(file).poll() == Seen(None, sha256(content).hexdigest(), problem)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    """A path that is no regular file is a problem; the poll returns."""
    pipe = tmp_path / "policy.yaml"
    os.mkfifo(pipe)
    problem = f"{pipe}: not a regular file: name the policy file"
    assert PolicySource(pipe).poll() == Seen(None, None, problem)


def test_links_in_a_circle_are_a_problem(tmp_path: Path) -> None:
    """Whatever the disk holds, a poll says it and does not raise."""
    loop = tmp_path / "policy.yaml"
    loop.symlink_to(loop)
    seen = PolicySource(loop).poll()
    assert seen is not None
    assert seen.problem is not None
    assert seen.problem.startswith(f"{loop}: cannot be read: ")
