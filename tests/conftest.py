"""What every suite shares.

Pure tests use no fixture from here.  Serve-level and real tests run `twinpool serve` as a child process
(tests/service.py); one lock per user keeps two such suites from sharing the cores, or everything times out.
"""

from __future__ import annotations

import getpass
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

ENGINE_MARKS = {"serve", "real"}


@pytest.fixture(autouse=True, scope="session")
def _one_engine_suite_at_a_time(request: pytest.FixtureRequest) -> Iterator[None]:
    if not any(ENGINE_MARKS & {mark.name for mark in item.iter_markers()} for item in request.session.items):
        yield
        return
    path = Path(tempfile.gettempdir()) / f"twinpool-tests-{getpass.getuser()}.lock"
    with FileLock(path, timeout=3600):
        yield
