"""When the sequences that run at a cell will end, by its clock; known as soon as they begin to run."""

from __future__ import annotations

import numpy as np

from app.simulation.fluid.course import Stays
from app.simulation.fluid.load import Numbers


class Ends:
    """Sequences by flow and by the bin of steps in which they end; the clock is somewhere among the bins."""

    def __init__(self, stays: Stays) -> None:
        self._stays = stays
        self._due: Numbers = np.zeros((len(stays.summed), 2 * stays.summed.shape[1]))
        self._at = 0.0  # the clock's place, in bins

    def part(self, share: float) -> Ends:
        """Split off a share of all."""
        other = Ends(self._stays)
        other._at, other._due = self._at, self._due * share
        self._due = self._due * (1.0 - share)
        return other

    def within(self, steps: float) -> Numbers:
        """By flow, those that end within so many steps."""
        bins = steps / self._stays.bin_steps
        first, last = int(self._at), int(self._at + bins)
        if last + 1 > self._due.shape[1]:
            return np.asarray(self._due[:, first:].sum(axis=1))
        if first == last:
            return np.asarray(self._due[:, first] * (bins / (first + 1 - self._at)))
        part = self._at + bins - last
        return np.asarray(self._due[:, first:last].sum(axis=1) + self._due[:, last] * part)

    def staying(self, steps: float, delay: float) -> Numbers:
        """By flow, of those who come evenly while so many steps pass, the share that is there at their end.

        They decode only `delay` steps after they came.
        """
        size = self._stays.bin_steps
        return 1.0 - self._stays.ended((steps - delay) / size) * size / steps

    def add(self, coming: Numbers, steps: float, delay: float) -> None:
        """Hold those who come evenly while so many steps pass; the clock is at their beginning."""
        size, summed = self._stays.bin_steps, self._stays.summed
        bins, begin = steps / size, self._at + delay / size
        back, whole = begin - int(begin), int(begin + bins) - int(begin)
        length = summed.shape[1] + whole + 1
        passed = self._make_room(int(delay / size) + length + 2)
        start = int(begin) - passed
        # What has ended at an edge, of those who came since the beginning, is the difference of two sums.
        ended = _shifted(summed, back, length)
        ended[:, whole:] -= _shifted(summed, begin + bins - int(begin) - whole, length - whole)
        self._due[:, start : start + length - 1] += np.diff(ended, axis=1) * (coming / bins)[:, None]

    def leave(self, steps: float) -> Numbers:
        """Let so many steps pass; by flow, those that ended."""
        bins = steps / self._stays.bin_steps
        self._make_room(int(bins) + 2)
        gone = self.within(steps)
        first, end = int(self._at), self._at + bins
        last = int(end)
        kept = (last + 1 - end) / (last + 1 - max(self._at, float(last)))
        self._due[:, first:last] = 0.0
        self._due[:, last] *= kept
        self._at = end
        return gone

    def _make_room(self, bins: int) -> int:
        """Let there be so many bins beyond the clock; by how many those that passed were cut off."""
        passed, size = int(self._at), self._due.shape[1]
        if passed + bins <= size:
            return 0
        kept = self._due[:, passed:]
        self._due = np.zeros((len(kept), max(size, 2 * bins)))
        self._due[:, : kept.shape[1]] = kept
        self._at -= passed
        return passed


def _shifted(summed: Numbers, back: float, length: int) -> Numbers:
    """The sums at the edges 0, 1, ... less `back`, 0 to 1, of a bin; beyond their end each grows by 1."""
    found = np.empty((len(summed), length))
    known = min(length, summed.shape[1])
    found[:, :known] = summed[:, :known]
    if length > known:
        found[:, known:] = summed[:, -1:] + np.arange(1.0, length - known + 1)
    found[:, 1:] -= back * np.diff(found, axis=1)
    return found
