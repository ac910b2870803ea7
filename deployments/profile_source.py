"""The profile as it is on the disk: the last good one, and what is wrong with the file now.

By content, never by time of change, so that an edit, a rename and the swap of a mounted ConfigMap are all
seen.  A bad edit keeps the last good profile; a file that is gone takes it away.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from autoscaling.instants import rfc3339
from autoscaling.profile import Profile, ProfileError, ProfileState, read_profile
from autoscaling.profile_match import Served, differences, doubts, fitted, pools_at

MAX_BYTES = 1 << 20  # a ConfigMap holds no more


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at the file."""

    sha: str | None = None  # of the bytes; None when there were none to read
    data: bytes | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    """What the looks have come to."""

    profile: Profile | None = None
    error: str | None = None


class ProfileSource:
    """One profile file, or none."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._last: str | None = None  # what the previous look found, as a key
        self._taken: str | None = None  # what `_known` was made of
        self._known = _Known()

    def poll(self) -> None:
        """Look again; never raises for what is on the disk.  Blocks: call it in a thread, twice a second.

        The first look counts at once, a later one when two in a row agree on it.
        """
        if self._path is None:
            return
        look = _look(self._path)
        key = f"{look.sha}:{look.error}"
        settled = self._taken is None or key == self._last
        self._last = key
        if not settled or key == self._taken:
            return
        self._taken = key
        self._known = self._judge(look)

    @property
    def profile(self) -> Profile | None:
        """The last good profile, of whatever was measured; None when there is no file."""
        return self._known.profile

    def state(self, served: Served) -> ProfileState | None:
        """What becomes of the profile beside what is served; None while that is not known."""
        known = self._known
        if self._path is not None and self._taken is None:
            return None  # nobody has looked yet
        if known.error is not None:
            return ProfileState.INVALID
        if known.profile is None:
            return ProfileState.NONE
        found = differences(known.profile, served)
        if found is None:
            return None
        return ProfileState.STALE if found else ProfileState.MEASURED

    def status(self, served: Served, tpot_s: float | None) -> dict[str, object]:
        """The profile's part of the status JSON; unknown is None.  `error` says what to do.

        `tpot_s` is the objective of interactive requests, for which `two_pools` is the answer.
        """
        known, state = self._known, self.state(served)
        profile = known.profile
        found = None if profile is None else differences(profile, served)
        answer = pools_at(profile, tpot_s) if profile is not None and fitted(profile, served) else None
        return {
            "path": None if self._path is None else str(self._path),
            "state": None if state is None else state.value,
            "made_at": None if profile is None else rfc3339(profile.made_at),
            "differences": None if found is None else list(found),
            "error": self._error(state, served),
            "two_pools": None
            if answer is None
            else {
                "tpot_seconds": answer.tpot_s,
                "answer": answer.answer.value,
                "margin": None if answer.margin is None else round(answer.margin, 4),
            },
        }

    def _error(self, state: ProfileState | None, served: Served) -> str | None:
        known = self._known
        if state is ProfileState.INVALID or self._path is None:
            return known.error
        if state is ProfileState.NONE:
            return f"{self._path}: there is no such file: limits are unmeasured until it is there"
        if known.profile is None:
            return None
        if found := differences(known.profile, served):
            return (
                f"{self._path}: measured for something else: {'; '.join(found)}: "
                "limits are unmeasured; run `twinpool bench` again"
            )
        words = "; ".join(doubts(known.profile))
        return f"{self._path}: {words}; run `twinpool bench` again" if words else None

    def _judge(self, look: _Look) -> _Known:
        if look.data is None:
            # Without a word the file is not there; else it is, and cannot be read.
            return _Known() if look.error is None else _Known(self._known.profile, look.error)
        try:
            return _Known(read_profile(_text(look.data), str(self._path)))
        except ProfileError as error:
            return _Known(self._known.profile, str(error))


def _look(path: Path) -> _Look:
    try:
        with open(path, "rb", buffering=0, opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return _Look(error=f"{path}: not a regular file: name the profile file")
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return _Look()
    except OSError as error:
        return _Look(
            error=f"{path}: cannot be read: {error.strerror}: the controller must be allowed to read it"
        )
    if len(data) > MAX_BYTES:
        return _Look(error=f"{path}: larger than {MAX_BYTES} bytes: this is no profile")
    return _Look(hashlib.sha256(data).hexdigest(), data)


def _text(data: bytes) -> str:
    """As UTF-8; a wrong byte becomes a mark that no number, name or fingerprint holds."""
    return data.decode(errors="replace")


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
