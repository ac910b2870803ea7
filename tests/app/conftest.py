"""What the tests of the application share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _children_hear_ctrl_c() -> Iterator[None]:
    """A shell lets what it starts in the background ignore SIGINT, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
