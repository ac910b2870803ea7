"""How full a cell's replicas were a moment ago, which is what ingresses know of each other's requests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Past:
    """Sequences of the mean replica at moments of the last `kept_s`, newest first."""

    kept_s: float
    ages_s: tuple[float, ...] = (0.0,)
    loads: tuple[float, ...] = (0.0,)

    def at(self, age_s: float) -> float:
        """So many seconds ago, between two moments in proportion; the oldest one says for all before it."""
        newer = None
        for age, load in zip(self.ages_s, self.loads, strict=True):
            if age >= age_s:
                if newer is None:
                    return load
                return newer[1] + (load - newer[1]) * (age_s - newer[0]) / (age - newer[0])
            newer = age, load
        return self.loads[-1]

    def then(self, seconds: float, load: float) -> Past:
        """After a tick, at whose end so many are there."""
        kept = sum(age < self.kept_s for age in self.ages_s)
        ages = tuple(seconds + age for age in self.ages_s[: kept + 1])
        return Past(self.kept_s, (0.0, *ages), (load, *self.loads[: kept + 1]))

    def thinned(self, share: float) -> Past:
        """With idle replicas more: so large a share of all have been there."""
        return Past(self.kept_s, self.ages_s, tuple(share * load for load in self.loads))
