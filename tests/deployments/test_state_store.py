"""What a controller leaves for its successor, on a real disk, with real kills."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from filelock import FileLock

from autoscaling.decisions import Change, Hold, HoldBy, Memory, Move, MoveState, Reason
from autoscaling.types import Role
from deployments import kept_files
from deployments.kept_files import FencedError, StoreError, UnknownSchemaError
from deployments.kept_state import RevisionRecord, RevisionState, State
from deployments.records import Records
from deployments.state_store import DirectoryStore, NoStore, Opened

WALL = 1_700_000_000.0  # of every clock here; the first epoch of a folder is one above it in ms
FIRST = 1_700_000_000_001
MOVE = Move(
    id="move-7",
    at=100.0,
    wall=WALL,
    source=Role.PLAIN,
    receiver=Role.SPECULATIVE,
    count=1,
    reason=Reason.SHORTFALL,
    before={Role.SPECULATIVE: 3, Role.PLAIN: 5},
    after={Role.SPECULATIVE: 4, Role.PLAIN: 4},
    state=MoveState.STARTING,
    revision=3,
    drained_at=104.5,
)
MEMORY = Memory(
    targets={Role.SPECULATIVE: 4, Role.PLAIN: 4},
    plan={Role.SPECULATIVE: 3, Role.PLAIN: 4},
    short_since={Role.SPECULATIVE: 70.0},
    spare_since={Role.PLAIN: 12.25},
    changes=(Change(100.0, Role.PLAIN, -1, 5), Change(100.0, Role.SPECULATIVE, 1, 3)),
    move=MOVE,
    cooling_until=160.0,
    moves=7,
    decisions=1234,
)


def plain(value: object) -> dict[str, Any]:
    """The value as a file has it."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(value)))
    return found


HOLD = Hold(by=HoldBy.OPERATOR, reason="incident", since=WALL, expires=WALL + 600, who="ada")
STATE = State(
    saved_wall=WALL,
    saved_now=105.0,
    memory=plain(MEMORY),
    holds=(plain(HOLD),),
    overrides=({"name": "launch", "pool": "plain"},),
    revisions=(
        RevisionRecord(2, "ab", RevisionState.ACTIVE, WALL),
        RevisionRecord(3, "cd", RevisionState.REFUSED, WALL, "line 4: unknown key"),
    ),
    active_revision=2,
    seen_revision=3,
    move_log=(plain(MOVE),),
    audit_seq=41,
)
# Saves larger and larger states until it is killed, and says each number that `save` has returned for.
SAVE = """
import sys
from pathlib import Path
from deployments.kept_state import State
from deployments.state_store import DirectoryStore
store = DirectoryStore(Path(sys.argv[1]))
opened = store.open()
print(opened.epoch, opened.state.audit_seq if opened.state else 0, opened.problem, flush=True)
seq = opened.state.audit_seq if opened.state else 0
while True:
    seq += 1
    store.save(State(memory={"x": [seq] * 40000}, audit_seq=seq), opened.epoch)
    print(seq, flush=True)
"""


def store(folder: Path) -> DirectoryStore:
    return DirectoryStore(folder, clock=lambda: WALL)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_folder_begins_at_the_wall_clock(tmp_path: Path) -> None:
    """An empty folder has no state, and an epoch above every life before it that had no folder."""
    assert store(tmp_path / "state").open() == Opened(FIRST, None, None)
    assert NoStore(clock=lambda: WALL).open() == Opened(FIRST - 1, None, None)


def test_the_state_comes_back(tmp_path: Path) -> None:
    """Case C6: targets, cool-downs, holds and revisions are there after a restart, one epoch later."""
    first = store(tmp_path)
    epoch = first.open().epoch
    first.save(STATE, epoch)
    opened = store(tmp_path).open()
    assert opened == Opened(FIRST + 1, replace(STATE, epoch=FIRST), None)
    assert opened.state is not None
    assert msgspec.convert(opened.state.memory, Memory) == MEMORY
    assert msgspec.convert(opened.state.holds[0], Hold) == HOLD
    assert msgspec.convert(opened.state.move_log[0], Move) == MOVE


@pytest.mark.parametrize("value", [Memory(), MEMORY, HOLD, Hold(HoldBy.METRICS, "", WALL), MOVE])
def test_decisions_survive_as_json(value: Memory | Hold | Move) -> None:
    """What the loop keeps between ticks is the same after plain values and JSON, role keys included."""
    assert msgspec.convert(plain(value), type(value)) == value


def test_a_life_that_saved_nothing_used_up_its_epoch(tmp_path: Path) -> None:
    """The epoch is on the disk before anything else, so it is never given twice."""
    assert [FIRST, FIRST + 1, FIRST + 2] == [store(tmp_path).open().epoch for _ in range(3)]


def test_a_former_life_is_refused(tmp_path: Path) -> None:
    """From the moment a successor has opened the store, its predecessor saves neither state nor policy."""
    old, new = store(tmp_path), store(tmp_path)
    epoch = old.open().epoch
    old.save(STATE, epoch)
    later = new.open().epoch
    message = f"{tmp_path} belongs to the controller of epoch {later}, this one has {epoch}: end it"
    with pytest.raises(FencedError, match=message):
        old.save(replace(STATE, audit_seq=99), epoch)
    with pytest.raises(FencedError, match=message):
        old.save_policy(9, "a: 1\n", epoch)
    opened = store(tmp_path).open()
    assert opened.state == replace(STATE, epoch=epoch)
    assert new.policy(9) is None


def test_a_kill_in_mid_write_leaves_a_whole_state(tmp_path: Path) -> None:
    """Case C6: after each kill -9 the state is whole, what was acknowledged is in it, the epoch grows."""
    chance = random.Random(6)
    acknowledged, epoch = 0, 0
    for _ in range(10):
        with subprocess.Popen(
            [sys.executable, "-c", SAVE, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            found = child.stdout.readline().split()
            assert int(found[0]) > epoch
            assert int(found[1]) >= acknowledged
            assert found[2] == "None"
            epoch = int(found[0])
            for _ in range(chance.randint(1, 20)):
                acknowledged = int(child.stdout.readline())
            for _ in range(chance.randint(0, 20_000)):
                pass
            os.kill(child.pid, signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, child.stdout.read().split())])
    opened = store(tmp_path).open()
    assert opened.problem is None
    assert opened.state is not None
    assert opened.state.audit_seq in (acknowledged, acknowledged + 1)
    assert opened.state.memory == {"x": [opened.state.audit_seq] * 40000}
    assert opened.epoch == epoch + 1


def test_a_death_in_the_middle_of_a_file_leaves_the_former_state(tmp_path: Path) -> None:
    """Case C6: half a state beside the whole one, left by a process that the kernel ended, is never read."""
    wall = """
import resource, signal
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
"""
    first = store(tmp_path)
    first.save(STATE, first.open().epoch)
    done = subprocess.run(
        [sys.executable, "-c", wall + SAVE, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=False
    )
    assert -signal.SIGXFSZ == done.returncode
    epoch, *rest = done.stdout.split()
    assert ["41", "None"] == rest
    assert (tmp_path / "state.json.tmp").stat().st_size == 50_000
    second = store(tmp_path)
    opened = second.open()
    assert opened == Opened(int(epoch) + 1, replace(STATE, epoch=FIRST), None)
    second.save(STATE, opened.epoch)
    assert names(tmp_path) == ["epoch", "state.json", "state.lock"]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\0" * 100,
        b"[]",
        b'{"epoch": 5}',
        b'{"schema":1,"epoch":1700000000900,"mem',
        b'{"schema":1,"epoch":"x"}',
    ],
    ids=["empty", "zeros", "list", "no schema", "half", "wrong type"],
)
def test_a_damaged_state_is_put_aside(tmp_path: Path, damage: bytes) -> None:
    """A half-written or foreign file is kept under another name, said, and begun anew above its epoch."""
    first = store(tmp_path)
    first.save(STATE, first.open().epoch)
    (tmp_path / "state.json").write_bytes(damage)
    opened = store(tmp_path).open()
    assert opened.state is None
    assert opened.epoch == (1700000000901 if b"900" in damage else FIRST + 1)
    assert opened.problem is not None
    assert opened.problem.startswith(f"{tmp_path}/state.json was damaged (")
    assert opened.problem.endswith(f"); it is kept as {tmp_path}/state.json.corrupt-1")
    assert (tmp_path / "state.json.corrupt-1").read_bytes() == damage
    store(tmp_path).save(STATE, opened.epoch)
    assert store(tmp_path).open() == Opened(opened.epoch + 1, replace(STATE, epoch=opened.epoch), None)


def test_each_damaged_state_has_its_own_name(tmp_path: Path) -> None:
    """Nothing that was put aside is overwritten."""
    for damage in (b"one", b"two"):
        (tmp_path / "state.json").write_bytes(damage)
        store(tmp_path).open()
    assert names(tmp_path) == ["epoch", "state.json.corrupt-1", "state.json.corrupt-2", "state.lock"]
    assert (tmp_path / "state.json.corrupt-1").read_bytes() == b"one"


@pytest.mark.parametrize(
    "damage", [None, b"", b"12", b"x\n", b"-3\n", b"%d\n" % (2**52 + 1), b"9" * 18 + b"\n"]
)
def test_a_damaged_epoch_is_passed_over(tmp_path: Path, damage: bytes | None) -> None:
    """Without the epoch's own file the next one is above the state's and the wall clock, and this is said."""
    first = store(tmp_path)
    first.save(STATE, first.open().epoch)
    if damage is None:
        (tmp_path / "epoch").unlink()
    else:
        (tmp_path / "epoch").write_bytes(damage)
    assert store(tmp_path).open() == Opened(
        FIRST + 1,
        replace(STATE, epoch=FIRST),
        f"{tmp_path}/epoch was damaged or gone; epochs go on at {FIRST + 1}",
    )


def test_an_unknown_schema_is_left_alone(tmp_path: Path) -> None:
    """A newer version's state is neither read nor overwritten; the epoch taken is told."""
    newer = b'{"schema":2,"epoch":1700000000500,"memory":{}}'
    (tmp_path / "state.json").write_bytes(newer)
    message = f"{tmp_path}/state.json has schema 2, this version knows 1: start the version that wrote it"
    with pytest.raises(UnknownSchemaError, match=message) as caught:
        store(tmp_path).open()
    assert caught.value.epoch == 1700000000501
    with pytest.raises(UnknownSchemaError, match=message):
        store(tmp_path).save(STATE, caught.value.epoch)
    assert (tmp_path / "state.json").read_bytes() == newer


def test_unknown_fields_are_ignored(tmp_path: Path) -> None:
    """A later version of the same schema may add fields."""
    (tmp_path / "state.json").write_bytes(b'{"schema":1,"epoch":7,"audit_seq":3,"news":{"a":[1]}}')
    (tmp_path / "epoch").write_bytes(b"7\n")
    assert store(tmp_path).open() == Opened(FIRST, State(epoch=7, audit_seq=3), None)


def test_a_state_that_could_not_be_read_back_is_refused(tmp_path: Path) -> None:
    """A number that is not finite would be null in the file; the good state stays."""
    first = store(tmp_path)
    epoch = first.open().epoch
    first.save(STATE, epoch)
    with pytest.raises(ValueError, match="saved_now"):
        first.save(replace(STATE, saved_now=float("nan")), epoch)
    assert store(tmp_path).open().state == replace(STATE, epoch=epoch)


def test_only_the_newest_moves_and_revisions_are_kept(tmp_path: Path) -> None:
    """200 of each, and the records of the revisions that act, however old."""
    first = store(tmp_path)
    records = [RevisionRecord(number, "", RevisionState.REFUSED, WALL) for number in range(1, 301)]
    records[1] = replace(records[1], state=RevisionState.ACTIVE)
    records[4] = replace(records[4], state=RevisionState.SHADOW)
    moves = tuple({"id": number} for number in range(1, 301))
    first.save(replace(STATE, revisions=tuple(records), move_log=moves), first.open().epoch)
    state = store(tmp_path).open().state
    assert state is not None
    assert [2, 5, *range(101, 301)] == [record.revision for record in state.revisions]
    assert list(range(101, 301)) == [move["id"] for move in state.move_log]


def test_the_texts_of_the_last_50_revisions_are_kept(tmp_path: Path) -> None:
    """Older texts go, but never that of the active revision: after a restart it is needed."""
    first = store(tmp_path)
    epoch = first.open().epoch
    for revision in range(1, 61):
        first.save_policy(revision, f"revision: {revision} é\n", epoch)
    first.save(replace(STATE, active_revision=2), epoch)
    second = store(tmp_path)
    assert [2, *range(11, 61)] == [number for number in range(1, 61) if second.policy(number) is not None]
    assert second.policy(2) == "revision: 2 é\n"
    (tmp_path / "policies" / "60.yaml").write_bytes(b"\xff")
    assert second.policy(60) is None


def test_everything_is_private(tmp_path: Path) -> None:
    """Folders are 0700 and files 0600, even with a permissive umask; no unfinished file is left."""
    before = os.umask(0)
    try:
        first = store(tmp_path / "deep" / "state")
        epoch = first.open().epoch
        first.save_policy(1, "a: 1\n", epoch)
        first.save(STATE, epoch)
    finally:
        os.umask(before)
    folder = tmp_path / "deep" / "state"
    modes = {
        str(path.relative_to(folder)): oct(path.stat().st_mode & 0o777)
        for path in (folder, *folder.rglob("*"))
    }
    assert modes == {
        ".": "0o700",
        "epoch": "0o600",
        "policies": "0o700",
        "policies/1.yaml": "0o600",
        "state.json": "0o600",
        "state.lock": "0o600",
    }


def test_no_room_is_a_passing_error_and_the_old_state_stays(tmp_path: Path) -> None:
    """When the disk takes no more, saving fails with the place and the mend; it works again with room."""
    first = store(tmp_path)
    epoch = first.open().epoch
    first.save(STATE, epoch)
    large = replace(STATE, memory={"x": "y" * 100_000})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(StoreError, match="File too large: make room, or change the folder's owner"):
            first.save(large, epoch)
        assert "state.json.tmp" not in names(tmp_path)
        assert msgspec.json.decode((tmp_path / "state.json").read_bytes(), type=State).memory == STATE.memory
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    first.save(large, epoch)
    assert store(tmp_path).open().state == replace(large, epoch=epoch)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """The error names the place."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match=f"{tmp_path}/file/state: Not a directory"):
        store(tmp_path / "file" / "state").open()


def test_a_lock_that_is_held_is_a_passing_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process in the store delays and never blocks; the error names the lock file."""
    monkeypatch.setattr(kept_files, "LOCK_WAIT_S", 0.0)
    with (
        FileLock(tmp_path / "state.lock"),
        pytest.raises(StoreError, match=f"{tmp_path}/state.lock is held by another process"),
    ):
        store(tmp_path).open()
    assert store(tmp_path).open().epoch == FIRST


def test_a_folder_that_was_emptied_is_filled_again(tmp_path: Path) -> None:
    """A running controller saves on under its own epoch."""
    first = store(tmp_path)
    epoch = first.open().epoch
    for path in tmp_path.iterdir():
        path.unlink()
    first.save(STATE, epoch)
    assert store(tmp_path).open() == Opened(epoch + 1, replace(STATE, epoch=epoch), None)


def test_no_store_keeps_nothing() -> None:
    """Saving is allowed, and nothing comes back; status says so."""
    nothing = NoStore()
    epoch = nothing.open().epoch
    nothing.save(STATE, epoch)
    nothing.save_policy(1, "a: 1\n", epoch)
    assert (nothing.open().state, nothing.policy(1)) == (None, None)
    assert nothing.describe() == "lost on restart"


def test_a_folder_says_where_it_is(tmp_path: Path) -> None:
    """Status names the folder."""
    assert store(tmp_path).describe() == f"kept in {tmp_path}"


# --- epochs ------------------------------------------------------------------------------------------


def test_a_life_is_above_the_wall_clock_and_the_audit(tmp_path: Path) -> None:
    """An old copy of the folder begins above lives that left no trace in it, and above its newer audit."""
    first = DirectoryStore(tmp_path, clock=lambda: WALL - 3600)
    first.save(STATE, first.open().epoch)
    assert FIRST == store(tmp_path).open().epoch
    Records(tmp_path, "audit", epoch=FIRST + 70).write("start", {})
    assert Opened(FIRST + 71, replace(STATE, epoch=FIRST - 3_600_000), None) == store(tmp_path).open()


@pytest.mark.parametrize("epoch", [2**52 + 1, 2**53, 2**60])
def test_an_epoch_beyond_every_clock_is_no_epoch(tmp_path: Path, epoch: int) -> None:
    """A state or an audit line that names one neither raises the next life nor fences this one."""
    first = store(tmp_path)
    own = first.open().epoch
    first.save(STATE, own)
    state = (tmp_path / "state.json").read_bytes().replace(b"%d" % own, b"%d" % epoch)
    (tmp_path / "state.json").write_bytes(state)
    (tmp_path / "audit.jsonl").write_text(f'{{"schema":1,"kind":"start","seq":1,"epoch":{epoch}}}\n')
    first.save(STATE, own)
    assert FIRST + 1 == store(tmp_path).open().epoch


def test_a_risen_epoch_is_kept(tmp_path: Path) -> None:
    """The next life is above it; one that was succeeded cannot rise any more."""
    first = store(tmp_path)
    own = first.open().epoch
    first.raise_epoch(own, own + 500)
    later = store(tmp_path).open().epoch
    assert own + 501 == later
    with pytest.raises(FencedError, match=f"belongs to the controller of epoch {later}"):
        first.raise_epoch(own, own + 9000)
    assert later + 1 == store(tmp_path).open().epoch


# --- what others put into the folder -----------------------------------------------------------------


def test_odd_names_among_the_policies_stop_no_save(tmp_path: Path) -> None:
    """Folders and names that are no revision's are left alone; the old texts still go."""
    first = store(tmp_path)
    epoch = first.open().epoch
    for revision in range(1, 61):
        first.save_policy(revision, "a: 1\n", epoch)
    odd = ["3", "٣.yaml", "-1.yaml", "0007.yaml", "x.yaml", ".yaml"]
    for name in odd:
        (tmp_path / "policies" / name).write_text("odd")
    (tmp_path / "policies" / "500.yaml").mkdir()
    first.save(STATE, epoch)
    kept = {f"{number}.yaml" for number in range(11, 61)} | {"2.yaml", "500.yaml", *odd}
    assert kept == set(names(tmp_path / "policies"))


def test_a_folder_in_the_place_of_a_text_is_put_aside(tmp_path: Path) -> None:
    """Else the text of the revision would be lost; so is a file in the place of the folder."""
    first = store(tmp_path)
    epoch = first.open().epoch
    (tmp_path / "policies").write_text("no folder")
    first.save_policy(1, "a: 1\n", epoch)
    (tmp_path / "policies" / "2.yaml").mkdir()
    first.save_policy(2, "a: 2\n", epoch)
    assert ("a: 1\n", "a: 2\n") == (first.policy(1), first.policy(2))
    assert ["1.yaml", "2.yaml", "2.yaml.corrupt-1"] == names(tmp_path / "policies")
    assert "no folder" == (tmp_path / "policies.corrupt-1").read_text()
