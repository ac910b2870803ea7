"""Numbered lines that outlive their writers."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import pytest

from autoscaling.types import Role
from deployments.kept_files import FencedError, StoreError, UnknownSchemaError
from deployments.record_reader import after, last, last_whole, newest_that, read
from deployments.records import Records

WALL = 1_767_225_600.1234  # 2026-01-01T00:00:00.123Z
# Writes lines until it is killed, small and large ones, and says each number that `write` has returned.
WRITE = """
import sys
from pathlib import Path
from deployments.records import Records
records = Records(Path(sys.argv[1]), "decisions", epoch=int(sys.argv[2]), max_bytes=1 << 20, keep=1000)
while True:
    for size in (10, 10, 300_000):
        print(records.write("move", {"text": "x" * size}), flush=True)
"""

# As WRITE, until the file would grow above a size: the kernel writes what fits, and ends the process.
WRITE_INTO_A_WALL = """
import resource, signal
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
"""


def records(folder: Path | None, *, epoch: int = 1, max_bytes: int = 64 << 20, keep: int = 8) -> Records:
    return Records(folder, "decisions", epoch=epoch, max_bytes=max_bytes, keep=keep, clock=lambda: WALL)


def seqs(folder: Path) -> list[int]:
    return [record["seq"] for record in read(folder, "decisions")]


def current(folder: Path) -> Path:
    return folder / "decisions.jsonl"


def rotated(folder: Path, number: int) -> list[int]:
    """The numbers of the records in one rotated file."""
    data = (folder / f"decisions.{number}.jsonl").read_bytes()
    return [msgspec.json.decode(line)["seq"] for line in data.splitlines()]


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """No file of this process grows above so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_line_has_its_head_and_its_fields(tmp_path: Path) -> None:
    """Schema, kind, number, time in UTC milliseconds and epoch stand first; one line each, private."""
    writer = records(tmp_path / "audit", epoch=7)
    assert writer.write("move", {"source": Role.PLAIN, "sizes": {Role.PLAIN: 3}, "reason": "a\nb"}) == 1
    assert current(tmp_path / "audit").read_bytes() == (
        b'{"schema":1,"kind":"move","seq":1,"at":"2026-01-01T00:00:00.123Z","epoch":7,'
        b'"source":"plain","sizes":{"plain":3},"reason":"a\\nb"}\n'
    )
    assert oct(current(tmp_path / "audit").stat().st_mode & 0o777) == "0o600"
    assert oct((tmp_path / "audit").stat().st_mode & 0o777) == "0o700"


def test_what_is_no_number_is_null(tmp_path: Path) -> None:
    """Unknown is null, whatever it was computed as, at any depth."""
    records(tmp_path).write(
        "o", {"a": float("nan"), "b": [float("inf"), 1.5], "c": {"d": float("-inf")}, "e": None}
    )
    (record,) = read(tmp_path, "decisions")
    assert (record["a"], record["b"], record["c"], record["e"]) == (None, [None, 1.5], {"d": None}, None)


def test_a_record_keeps_its_own_names(tmp_path: Path) -> None:
    """A field cannot replace a record's number or time."""
    with pytest.raises(ValueError, match=r"kind 'move' has fields of its own named \['at', 'seq'\]"):
        records(tmp_path).write("move", {"seq": 9, "at": "now", "x": 1})
    assert not current(tmp_path).exists()


def test_many_are_written_together(tmp_path: Path) -> None:
    """One number each, one file, none when there are none; a single write goes on behind them."""
    writer = records(tmp_path)
    assert 3 == writer.write_all("r", [{"x": number} for number in range(3)])
    assert 3 == writer.write_all("r", [])
    assert 4 == writer.write("a", {})
    assert [("r", 1, 0), ("r", 2, 1), ("r", 3, 2), ("a", 4, None)] == [
        (record["kind"], record["seq"], record.get("x")) for record in read(tmp_path, "decisions")
    ]


def test_many_stand_in_one_file(tmp_path: Path) -> None:
    """They are not torn apart by a rotation, which comes before them."""
    writer = records(tmp_path, max_bytes=1000)
    writer.write("a", {"text": "x" * 500})
    writer.write_all("r", [{"text": "x" * 300}] * 5)
    assert [1] == rotated(tmp_path, 1)
    assert [1, 2, 3, 4, 5, 6] == seqs(tmp_path)


def test_of_many_none_is_written_when_the_disk_is_full(tmp_path: Path) -> None:
    """The numbers are free again, and the next one takes them."""
    writer = records(tmp_path)
    writer.write("a", {})
    with small_disk(5000), pytest.raises(StoreError, match="File too large"):
        writer.write_all("r", [{"text": "x" * 1000}] * 20)
    assert [1] == seqs(tmp_path)
    assert 2 == writer.write("b", {})


def test_one_of_many_with_a_field_of_the_records_own(tmp_path: Path) -> None:
    """None is written."""
    with pytest.raises(ValueError, match=r"has fields of its own named \['seq'\]"):
        records(tmp_path).write_all("r", [{"x": 1}, {"seq": 9}])
    assert not current(tmp_path).exists()


def test_the_newest_that_fits(tmp_path: Path) -> None:
    """Searched from the end, over rotated files, and only so far."""
    writer = records(tmp_path, max_bytes=300)
    for number in range(10):
        writer.write("r", {"x": number % 3, "text": "x" * 50})

    def x_is(wanted: int) -> Callable[[dict[str, Any]], bool]:
        return lambda record: record.get("x") == wanted

    found = newest_that(tmp_path, "decisions", x_is(1), 10)
    assert found is not None
    assert 8 == found["seq"]
    assert newest_that(tmp_path, "decisions", x_is(1), 2) is None
    assert newest_that(tmp_path, "decisions", x_is(7), 100) is None
    assert newest_that(tmp_path / "none", "decisions", x_is(1), 100) is None


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    """The next writer continues where the last one ended, also when the file was just rotated."""
    writer = records(tmp_path, epoch=1)
    assert [1, 2] == [writer.write("a", {}), writer.write("b", {})]
    assert records(tmp_path, epoch=2).write("c", {}) == 3
    current(tmp_path).rename(tmp_path / "decisions.1.jsonl")
    assert records(tmp_path, epoch=3).write("d", {}) == 4
    assert [("a", 1, 1), ("b", 2, 1), ("c", 3, 2), ("d", 4, 3)] == [
        (record["kind"], record["seq"], record["epoch"]) for record in read(tmp_path, "decisions")
    ]


@pytest.mark.parametrize(
    "torn",
    [b'{"schema":1,"ki', b"\0" * 4096, b"{}\n", b'{"schema":1,"kind":"x","seq":3,"epoch":9}', b"\0\n{"],
)
def test_a_torn_line_is_cut_and_its_number_used(tmp_path: Path, torn: bytes) -> None:
    """What a kill or a power cut left behind the last whole record is no record: no gap and no duplicate."""
    writer = records(tmp_path)
    writer.write("a", {})
    writer.write("b", {})
    with current(tmp_path).open("ab") as file:
        file.write(torn)
    assert seqs(tmp_path) == [1, 2]
    assert records(tmp_path, epoch=2).write("c", {}) == 3
    assert seqs(tmp_path) == [1, 2, 3]
    assert current(tmp_path).read_bytes().count(b"\n") == 3


def test_a_torn_first_line_is_cut(tmp_path: Path) -> None:
    """A writer that was killed in its very first line left nothing."""
    current(tmp_path).write_bytes(b'{"schema":1,"kind":"move","se')
    assert records(tmp_path).write("a", {}) == 1
    assert seqs(tmp_path) == [1]


def test_a_kill_in_mid_write_leaves_no_gap_and_no_duplicate(tmp_path: Path) -> None:
    """Case C6: ten writers are killed at random moments; every number is there once."""
    chance = random.Random(10)
    acknowledged = 0
    for epoch in range(1, 11):
        with subprocess.Popen(
            [sys.executable, "-c", WRITE, str(tmp_path), str(epoch)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            for _ in range(chance.randint(1, 25)):
                acknowledged = int(child.stdout.readline())
            for _ in range(chance.randint(0, 20_000)):
                pass
            os.kill(child.pid, signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, child.stdout.read().split())])
    newest = records(tmp_path, epoch=11).write("end", {})
    found = list(read(tmp_path, "decisions"))
    assert list(range(1, newest + 1)) == [record["seq"] for record in found]
    assert newest > acknowledged
    epochs = [record["epoch"] for record in found]
    assert sorted(epochs) == epochs
    assert set(range(1, 12)) == set(epochs)


def test_a_death_in_the_middle_of_a_line_leaves_no_gap_and_no_duplicate(tmp_path: Path) -> None:
    """Case C6: a writer that the kernel ended within a line left half of it, which its successor cuts."""
    chance = random.Random(3)
    code = WRITE.replace("import sys\n", "import sys\n" + WRITE_INTO_A_WALL)
    for epoch in range(1, 11):
        size = current(tmp_path).stat().st_size if epoch > 1 else 0
        wall = size + chance.randint(1000, 60_000)
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), str(epoch), str(wall)],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert -signal.SIGXFSZ == done.returncode
        assert wall == current(tmp_path).stat().st_size
        assert b"\n" != current(tmp_path).read_bytes()[-1:]
        assert list(range(1, int(done.stdout.split()[-1]) + 1)) == seqs(tmp_path)


def test_rotation_keeps_the_newest(tmp_path: Path) -> None:
    """A file that would grow too large moves up; the oldest goes; the reader joins the rest in order."""
    writer = records(tmp_path, max_bytes=250, keep=2)
    for _ in range(9):
        writer.write("a", {"text": "x" * 20})  # two fit into a file
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "decisions.1.jsonl",
        "decisions.2.jsonl",
        "decisions.jsonl",
        "decisions.lock",
    ]
    assert seqs(tmp_path) == [5, 6, 7, 8, 9]
    assert all(path.stat().st_size <= 250 for path in tmp_path.iterdir())


def test_a_line_larger_than_a_file_has_its_own(tmp_path: Path) -> None:
    """It is written whole; the next one begins a new file."""
    writer = records(tmp_path, max_bytes=200)
    for size in (1, 1000, 1):
        writer.write("a", {"text": "x" * size})
    assert seqs(tmp_path) == [1, 2, 3]
    assert seqs(tmp_path)[-1:] == [record["seq"] for record in last(tmp_path, "decisions", None, 1)]
    assert (tmp_path / "decisions.2.jsonl").exists()


def test_a_kill_between_two_renames_loses_nothing(tmp_path: Path) -> None:
    """A gap in the names of the files is no gap in the numbers, before and after the next rotation."""
    writer = records(tmp_path, max_bytes=100, keep=4)
    for _ in range(3):
        writer.write("a", {"text": "x" * 20})
    (tmp_path / "decisions.2.jsonl").rename(tmp_path / "decisions.3.jsonl")
    assert seqs(tmp_path) == [1, 2, 3]
    assert [4, 5] == [writer.write("a", {"text": "x" * 20}) for _ in range(2)]
    assert seqs(tmp_path) == [1, 2, 3, 4, 5]


def test_fewer_files_are_kept_after_a_change_of_mind(tmp_path: Path) -> None:
    """Files above a lowered number go with the next rotation."""
    writer = records(tmp_path, max_bytes=100, keep=5)
    for _ in range(6):
        writer.write("a", {"text": "x" * 20})
    records(tmp_path, max_bytes=100, keep=2).write("a", {"text": "x" * 20})
    assert seqs(tmp_path) == [5, 6, 7]


def test_a_reader_beside_a_rotating_writer_misses_nothing(tmp_path: Path) -> None:
    """What was there when a reader began is read once and in order, while files move up under it."""
    writer = records(tmp_path, max_bytes=300, keep=1000)
    for _ in range(50):
        writer.write("a", {"text": "x" * 20})
    begun = read(tmp_path, "decisions")
    found = [next(begun)["seq"]]
    for _ in range(50):
        writer.write("a", {"text": "x" * 20})
    found += [record["seq"] for record in begun]
    assert found[:50] == list(range(1, 51))
    assert found == list(range(1, len(found) + 1))


def test_a_file_under_two_names_is_read_once(tmp_path: Path) -> None:
    """A reader that meets a file before and after its rename does not double its records."""
    writer = records(tmp_path)
    writer.write("a", {})
    (tmp_path / "decisions.1.jsonl").hardlink_to(current(tmp_path))
    assert seqs(tmp_path) == [1]
    assert [1] == [record["seq"] for record in last(tmp_path, "decisions", None, 5)]


def test_a_former_controller_is_refused(tmp_path: Path) -> None:
    """After a line of a higher epoch the old writer writes no more, whether it was open or begins."""
    old, new = records(tmp_path, epoch=4), records(tmp_path, epoch=5)
    assert [1, 2, 3] == [old.write("a", {}), new.write("b", {}), new.write("c", {})]
    message = f"{current(tmp_path)} is written by the controller of epoch 5, this one has 4: end it"
    for writer in (old, records(tmp_path, epoch=4)):
        with pytest.raises(FencedError, match=message):
            writer.write("d", {})
    assert new.write("e", {}) == 4
    assert seqs(tmp_path) == [1, 2, 3, 4]


def test_a_former_controller_is_refused_after_a_rotation(tmp_path: Path) -> None:
    """The fence stands also when the file of the name is new and empty."""
    records(tmp_path, epoch=5).write("a", {})
    current(tmp_path).rename(tmp_path / "decisions.1.jsonl")
    with pytest.raises(FencedError, match="epoch 5, this one has 4"):
        records(tmp_path, epoch=4).write("b", {})


def test_a_lingering_writers_line_is_counted(tmp_path: Path) -> None:
    """A line that the old controller wrote before the new one's next takes its number."""
    old, new = records(tmp_path, epoch=4), records(tmp_path, epoch=4)
    assert [1, 2, 3, 4] == [old.write("a", {}), new.write("b", {}), old.write("c", {}), new.write("d", {})]
    assert seqs(tmp_path) == [1, 2, 3, 4]


def test_threads_share_one_sequence(tmp_path: Path) -> None:
    """Writes from several threads are whole lines with numbers of their own."""
    writer = records(tmp_path, max_bytes=2000, keep=100)
    threads = [
        threading.Thread(target=lambda: [writer.write("a", {"text": "x" * 50}) for _ in range(50)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seqs(tmp_path) == list(range(1, 201))


def test_numbers_go_on_when_the_files_are_removed(tmp_path: Path) -> None:
    """A file that was removed or emptied under a running writer is begun anew, above what was written."""
    writer = records(tmp_path)
    writer.write("a", {})
    current(tmp_path).unlink()
    assert writer.write("b", {}) == 2
    os.truncate(current(tmp_path), 0)
    assert writer.write("c", {}) == 3
    assert seqs(tmp_path) == [3]


def test_lines_begun_and_not_saved_are_found(tmp_path: Path) -> None:
    """Case C6: at a start, the audit lines above the number in the saved state, over rotated files."""
    writer = records(tmp_path, max_bytes=200)
    for number in range(1, 8):
        writer.write("move", {"id": f"move-{number}"})
    fresh = records(tmp_path, epoch=2)
    assert ["move-6", "move-7"] == [record["id"] for record in fresh.after(5)]
    assert fresh.after(7) == ()
    assert list(range(1, 8)) == [record["seq"] for record in after(tmp_path, "decisions", 0)]
    assert records(tmp_path / "none").after(0) == ()


def test_the_last_of_a_kind(tmp_path: Path) -> None:
    """The newest records of a kind, oldest of them first, however many files and blocks lie between."""
    writer = records(tmp_path, max_bytes=150_000)
    for number in range(1, 11):
        writer.write("even" if number % 2 == 0 else "odd", {"text": "x" * 70_000})

    def found(kind: str | None, count: int) -> list[int]:
        return [record["seq"] for record in last(tmp_path, "decisions", kind, count)]

    assert found("even", 2) == [8, 10]
    assert found("odd", 100) == [1, 3, 5, 7, 9]
    assert found(None, 3) == [8, 9, 10]
    assert found("none", 3) == []
    assert found("even", 0) == []


def test_a_failed_write_leaves_no_half_line(tmp_path: Path) -> None:
    """When the disk takes no more, the number stays free, and with room the sequence has no gap."""
    writer = records(tmp_path)
    writer.write("a", {})
    with small_disk(5000):
        with pytest.raises(StoreError, match="File too large"):
            writer.write("b", {"text": "x" * 10_000})
        size = current(tmp_path).stat().st_size
        assert writer.write("c", {}) == 2
    assert size < 100
    assert [("a", 1), ("c", 2)] == [(record["kind"], record["seq"]) for record in read(tmp_path, "decisions")]


def test_a_foreign_file_is_not_touched(tmp_path: Path) -> None:
    """A file of lines that are no records is refused, not cut."""
    current(tmp_path).write_bytes(b"hello\nworld\n")
    with pytest.raises(StoreError, match="has 2 lines and no record among them: move it away"):
        records(tmp_path).write("a", {})
    assert current(tmp_path).read_bytes() == b"hello\nworld\n"


def test_an_unknown_schema_is_refused(tmp_path: Path) -> None:
    """Lines of a major version that we do not know are neither continued nor misread."""
    line = b'{"schema":2,"kind":"move","seq":5,"epoch":1}\n'
    current(tmp_path).write_bytes(line)
    message = f"{current(tmp_path)} has a record of schema 2, this version knows 1"
    with pytest.raises(UnknownSchemaError, match=message):
        records(tmp_path).write("a", {})
    with pytest.raises(UnknownSchemaError, match=message):
        list(read(tmp_path, "decisions"))
    assert current(tmp_path).read_bytes() == line


def test_unknown_fields_are_kept(tmp_path: Path) -> None:
    """A reader hands on what it does not know."""
    current(tmp_path).write_bytes(b'{"schema":1,"kind":"move","seq":5,"epoch":1,"news":2}\n')
    assert [record["news"] for record in read(tmp_path, "decisions")] == [2]
    assert records(tmp_path).write("a", {}) == 6


def test_names_do_not_mix(tmp_path: Path) -> None:
    """Two kinds of records in one folder have files and numbers of their own."""
    records(tmp_path).write("a", {})
    other = Records(tmp_path, "decisions-2", epoch=1)
    assert [1, 2] == [other.write("b", {}), other.write("b", {})]
    assert seqs(tmp_path) == [1]
    assert list(read(tmp_path, "observations")) == []


def test_without_a_folder_only_stdout(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Lines are printed when asked for, with a folder or without one."""
    nowhere = Records(None, "decisions", epoch=1, stdout=True, clock=lambda: WALL)
    assert [1, 2] == [nowhere.write("a", {"x": 1}), nowhere.write("b", {})]
    line = '{"schema":1,"kind":"a","seq":1,"at":"2026-01-01T00:00:00.123Z","epoch":1,"x":1}\n'
    assert capsys.readouterr().out.startswith(line)
    assert nowhere.after(0) == ()
    Records(tmp_path, "decisions", epoch=1, stdout=True, clock=lambda: WALL).write("a", {"x": 1})
    assert (capsys.readouterr().out, current(tmp_path).read_text(encoding="utf-8")) == (line, line)
    Records(None, "decisions", epoch=1).write("a", {})
    assert capsys.readouterr().out == ""


def test_a_closed_writer_opens_again(tmp_path: Path) -> None:
    """Closing ends nothing; a line with `fsync` is like any other."""
    writer = Records(tmp_path, "decisions", epoch=1, fsync=True, max_bytes=100)
    writer.write("a", {})
    writer.close()
    writer.close()
    assert writer.write("b", {}) == 2
    assert seqs(tmp_path) == [1, 2]


# --- what others put into the file -------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b'{"schema":1,"kind":"x","seq":"9"}',
        b'{"schema":1,"kind":"x","seq":null}',
        b'{"schema":1,"kind":"x","seq":9.5}',
        b'{"schema":1,"kind":"x","seq":true}',
        b'{"schema":1,"kind":"x","seq":-1}',
        b'{"schema":1,"kind":"x","seq":1%s}' % (b"0" * 30),
        b'{"schema":1,"kind":5,"seq":9}',
        b'{"schema":1,"kind":"x","seq":9,"epoch":"a"}',
        b'{"schema":1,"kind":"x","seq":9,"epoch":4503599627370497}',
        b'{"schema":"1","kind":"x","seq":9}',
        b"[" * 100_000,
    ],
)
def test_a_line_of_wrong_types_is_no_record(tmp_path: Path, line: bytes) -> None:
    """It is neither read nor counted, and the next record has the next number."""
    records(tmp_path).write("move", {})
    with current(tmp_path).open("ab") as file:
        file.write(line + b"\n")
    assert [1] == seqs(tmp_path)
    assert [1] == [record["seq"] for record in after(tmp_path, "decisions", 0)]
    assert 2 == records(tmp_path).write("move", {})


def test_a_long_tail_without_lines_is_read_once(tmp_path: Path) -> None:
    """8 MB of zeros behind the last record are passed over in pieces, and never held together."""
    records(tmp_path).write("move", {})
    with current(tmp_path).open("ab") as file:
        file.write(b"\0" * (8 << 20))
    tracemalloc.start()
    try:
        (found,) = last(tmp_path, "decisions", None, 1)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 1 == found["seq"]
    assert most < 1 << 20
    assert 2 == records(tmp_path).write("move", {})
    assert [1, 2] == seqs(tmp_path)


class Counted(bytes):
    """Bytes that count how many of them were joined by `+`."""

    joined = 0

    def __add__(self, other: Any) -> bytes:
        Counted.joined += len(self) + len(other)
        return bytes(self) + bytes(other)


class CountedFile(FileIO):
    """A file whose blocks are `Counted`."""

    def read(self, size: int | None = -1, /) -> bytes:
        return Counted(super().read(size))


def test_a_long_line_is_joined_once(tmp_path: Path) -> None:
    """A whole line of many blocks is found with its end, and no block is copied for each block before it."""
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(b'{"schema":1,"kind":"x","seq":1}\n' + b"\0" * (8 << 20) + b"\n\ntorn")
    Counted.joined = 0
    with CountedFile(path) as file:
        assert 32 == last_whole(cast(BinaryIO, file), path)
    assert Counted.joined < 9 << 20
