"""How much of our cores other processes use."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from app.bench.found import Found, join, others_cores
from app.bench.others import Busy, Clock, Look, Use, clock, look, our_cores, used

BURN = "import time\nwhile time.process_time() < 0.4: pass\n"


def test_others_are_all_but_our_own() -> None:
    """Of 6 s that the cores were busy within 4 s, 2 were ours: 1 core was others'."""
    found = used(Clock(10.0, 100.0, 50.0), Clock(14.0, 106.0, 52.0))

    assert Use(4.0, 4.0) == found
    assert 1.0 == found.cores


def test_others_use_no_less_than_nothing() -> None:
    """The kernel counts in ticks, and not at one moment."""
    assert Use(0.0, 1.0) == used(Clock(0.0, 5.0, 5.0), Clock(1.0, 5.9, 6.0))


def test_what_an_ended_child_has_used_stays_ours() -> None:
    """An engine that ends meanwhile makes nobody else busy."""
    first = clock()
    child = subprocess.Popen([sys.executable, "-c", BURN])
    while child.poll() is None:
        time.sleep(0.02)
    second = clock()

    assert first is not None
    assert second is not None
    assert 0.39 <= second.own_s - first.own_s
    assert second.busy_s > first.busy_s


def test_a_process_of_somebody_else_is_named() -> None:
    """Its parent has ended, so it is none of ours; the share is that of the time looked at."""
    script = "import time\nend = time.time() + 60\nwhile time.time() < end: pass\n"
    started = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" >/dev/null 2>&1 & echo $!', sys.executable, script],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    pid = int(started.stdout)
    try:
        found = look(0.5)
    finally:
        os.kill(pid, 9)

    assert found is not None
    assert len(our_cores()) == found.ours
    assert found.cores > 0
    assert os.getpid() not in {one.pid for one in found.busiest}
    assert len(found.busiest) <= 3


def test_what_is_told_names_the_busiest() -> None:
    """More than a tenth of our cores is busy."""
    quiet = Look(0.0, 2, ())
    loud = Look(1.25 * len(our_cores()), 2, (Busy("cargo", 7, 1.0), Busy("python", 9, 0.21)))

    assert not quiet.busy
    assert loud.busy
    assert "other processes use 0.0 of 2 CPU cores" == quiet.words()
    assert loud.words().endswith("of 2 CPU cores, cargo (pid 7): 1.0, python (pid 9): 0.2")


def test_rounds_of_another_start_count_as_the_same_rounds() -> None:
    """Where an engine is started for each K: 3 core seconds in 4 s, and 1 in 1 s."""
    found, more = Found(others=[Use(1.0, 2.0)]), Found(others=[Use(2.0, 2.0), Use(1.0, 1.0)])
    join(found, more)

    assert (0.75, 1.0) == others_cores(found)


def test_a_round_that_is_not_known_leaves_all_unknown() -> None:
    """By its place in the list, another would stand for it."""
    found = Found(others=[Use(1.0, 2.0)])
    join(found, Found(others_known=False))

    assert () == others_cores(found)
