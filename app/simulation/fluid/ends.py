"""When the sequences that run at a cell will end, by its clock; known as soon as they begin to run."""

from __future__ import annotations

import numpy as np

from app.simulation.fluid.course import Stays
from app.simulation.fluid.load import Numbers, summed


class Ends:
    """Sequences by flow and by the bin of steps in which they end; the clock is somewhere among the bins."""

    def __init__(self, stays: Stays) -> None:
        self._stays = stays
        self._due: Numbers = np.zeros((len(stays.summed), 2 * stays.summed.shape[1]))
        self._ended: Numbers = np.diff(stays.summed, axis=1)  # by bin after they came; all in the last one
        self._ending: Numbers = np.diff(self._ended, axis=1, prepend=0.0)
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
            return np.asarray(summed(self._due[:, first:], axis=1))
        if first == last:
            return self._due[:, first] * (bins / (first + 1 - self._at))
        part = self._at + bins - last
        return np.asarray(summed(self._due[:, first:last], axis=1) + self._due[:, last] * part)

    def staying(self, steps: float, delay: float) -> Numbers:
        """By flow, of those who come evenly while so many steps pass, the share that is there at their end.

        They decode only `delay` steps after they came.
        """
        size = self._stays.bin_steps
        return 1.0 - self._stays.ended((steps - delay) / size) * size / steps

    def add(self, coming: Numbers, steps: float, delay: float) -> None:
        """Hold those who come evenly while so many steps pass; the clock is at their beginning."""
        size, bins = self._stays.bin_steps, steps / self._stays.bin_steps
        begin = self._at + delay / size
        whole, known = int(begin + bins) - int(begin), self._ended.shape[1]
        passed = self._make_room(int(delay / size) + known + whole + 4)
        start = int(begin) - passed
        due, per_bin = self._due, (coming / bins)[:, None]
        # What ends in a bin, of those who came since the beginning, is the difference of two: of all who came
        # since the first of them did, and since the last of them did.
        due[:, start : start + known] += (self._ended - (begin - int(begin)) * self._ending) * per_bin
        due[:, start + known : start + known + whole] += per_bin
        start, begin = start + whole, begin + bins
        due[:, start : start + known] -= (self._ended - (begin - int(begin)) * self._ending) * per_bin

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
