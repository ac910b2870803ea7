"""`--replicas 2,4,6` of `twinpool simulate`: the same policy at several sizes on one trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.cli.bench_options import BadOptionError, numbers
from app.cli.output import fail
from autoscaling.policy import MOST_REPLICAS, CapacityPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.simulation.compared import Entry
    from app.simulation.report.subject import Subject

OWN = "twinpool"  # the contender that the policy itself is
MOST = 20  # sizes of one run
Sizes = tuple[int, ...]


def sizes_of(text: str | None) -> Sizes:
    """The sizes that --replicas names, smallest first; none without the option."""
    if text is None:
        return ()
    try:
        # Whether one of them can be had is said where the policy is scaled.
        found = numbers("--replicas", text, least=0, most=10 * MOST_REPLICAS)
    except BadOptionError as error:
        fail(str(error), "give a number of replicas, or several with commas between, such as 2,4,6")
    if len(found) > MOST:
        fail(f"--replicas {text}: {len(found)} sizes", f"give {MOST} at most")
    return found


def name_of(size: int) -> str:
    """How a size is called."""
    return f"{size:,} replicas"


def entries_of(policies: Mapping[int, CapacityPolicy], wall: float) -> list[Entry]:
    """One for each size."""
    from app.simulation.compared import Entry, first_sizes  # noqa: PLC0415
    from app.simulation.contenders import CONTENDERS  # noqa: PLC0415

    return [
        Entry(name_of(size), CONTENDERS[OWN], policy, first_sizes(policy, wall))
        for size, policy in policies.items()
    ]


def sized(subject: Subject, policies: Mapping[int, CapacityPolicy]) -> Subject:
    """The subject of several sizes: it asks about the smallest that is enough, else the largest."""
    from app.simulation.report.sizes import largest, smallest  # noqa: PLC0415
    from app.simulation.scaled_policy import size_words  # noqa: PLC0415

    found = replace(
        subject,
        sizes={name_of(size): size for size in policies},
        words={name_of(size): size_words(policy) for size, policy in policies.items()},
    )
    return replace(found, chosen=smallest(found) or largest(found))
