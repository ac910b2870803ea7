"""Signals that stop the demo: an exception outside of a loop, one cancel inside."""

from __future__ import annotations

import asyncio
import signal

import pytest

from app.demo.stops import NUMBERS, Stops


@pytest.mark.parametrize("number", NUMBERS)
def test_outside_of_a_loop_it_is_ctrl_c(number: signal.Signals) -> None:
    """SIGTERM and a closed terminal too; afterwards the former handler is back."""
    before = signal.getsignal(number)

    with pytest.raises(KeyboardInterrupt), Stops().installed():
        signal.raise_signal(number)

    assert before == signal.getsignal(number)


def test_a_loop_is_cancelled_once() -> None:
    """An impatient user does not cut off what ends the streams."""
    stops = Stops()
    cleaned: list[str] = []

    async def work() -> None:
        with stops.cancelling():
            try:
                signal.raise_signal(signal.SIGINT)
                await asyncio.Event().wait()
            finally:
                for _ in range(3):
                    signal.raise_signal(signal.SIGTERM)
                    await asyncio.sleep(0)
                cleaned.append("all")

    with stops.installed(), stops.held(), pytest.raises(asyncio.CancelledError):
        asyncio.run(work())

    assert ["all"] == cleaned


def test_a_signal_before_the_loop_is_not_lost() -> None:
    """It cancels the task as soon as there is one."""
    stops = Stops()

    async def work() -> None:
        with stops.cancelling():
            await asyncio.Event().wait()

    with stops.installed(), stops.held():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(work())
