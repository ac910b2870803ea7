"""Hours pass in moments, in order."""

from __future__ import annotations

import asyncio

import pytest

from app.simulation.virtual_time import StalledError, run_virtually


def test_a_day_of_sleep_takes_no_time() -> None:
    """And the clock says that it has passed."""

    async def sleeps() -> float:
        await asyncio.sleep(86_400.0)
        return asyncio.get_running_loop().time()

    assert 86_400.0 == pytest.approx(run_virtually(sleeps()))


def test_what_is_due_earlier_comes_earlier() -> None:
    """Whoever was started first; what is due at the same time in the order in which it was asked for."""
    seen: list[tuple[str, float]] = []

    async def note(name: str, after_s: float) -> None:
        await asyncio.sleep(after_s)
        seen.append((name, round(asyncio.get_running_loop().time(), 6)))

    async def main() -> None:
        await asyncio.gather(note("late", 3.0), note("first", 1.0), note("second", 1.0), note("between", 2.5))

    run_virtually(main())
    assert [("first", 1.0), ("second", 1.0), ("between", 2.5), ("late", 3.0)] == seen


def test_time_limits_are_in_virtual_time() -> None:
    """A wait of a minute is given up after it."""

    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60.0):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert 60.0 == pytest.approx(run_virtually(main()))


def test_waiting_for_ever_is_an_error() -> None:
    """Not a hang."""

    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(StalledError, match="every task waits"):
        run_virtually(main())
