"""The ingress's reading of snapshots: what of another version is logged."""

from __future__ import annotations

import logging

import msgspec
import pytest

from app.snapshot_reader import SnapshotReader
from autoscaling.mixed_versions import UnreadableError
from tests.app.views import snapshot, view


def test_what_is_left_out_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A snapshot comes four times a second."""
    caplog.set_level(logging.WARNING, logger="ray.serve")
    reader, message = SnapshotReader(), msgspec.to_builtins(snapshot(view("a"), view("b")))
    message["replicas"][0]["role"] = "prefill"
    for _ in range(3):
        assert ["b"] == [one.replica_id for one in reader.read(message).replicas]
    assert [
        "the controller's snapshot is of another version: replicas[] is left out: "
        "Invalid enum value 'prefill' - at `$.role`"
    ] == caplog.messages


def test_a_snapshot_without_use_is_refused_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Of an unknown major version nothing is used."""
    caplog.set_level(logging.WARNING, logger="ray.serve")
    reader, message = SnapshotReader(), msgspec.to_builtins(snapshot(view("a"))) | {"schema": 2}
    for _ in range(2):
        with pytest.raises(UnreadableError):
            reader.read(message)
    assert ["a snapshot of schema 2, known here is 1: the last snapshot stays in force"] == caplog.messages
