"""Drafts that are accepted at prescribed rates, whatever they are; the pure part, without vLLM."""

from __future__ import annotations

import random

from deployments.vllm_synthetic_acceptance import accept


class Into(dict[tuple[int, int], int]):
    """A tensor of whole numbers, as far as it is written."""

    def row(self, request: int) -> list[int]:
        """What was written of a request, from its beginning."""
        return [self[at] for at in sorted(self) if at[0] == request]


def test_a_row_ends_at_its_first_rejected_draft() -> None:
    """With the target's token; a whole row gains the bonus token, one without drafts is that alone."""
    into = Into()
    accept(
        into, [2, 2, 4], [11, 12, 31, 32], [1, 2, 3, 4], [91, 92, 93], None, [0.6, 0, 0.4, 0.1], [0.5, 0.2]
    )

    assert [[1], [92], [31, 32, 93]] == [into.row(request) for request in range(3)]


def test_rows_that_are_not_greedy_stay() -> None:
    """They are another kernel's."""
    into = Into()
    accept(into, [1, 2], [11, 21], [1, 2], [91, 92], [False, True], [0.0, 0.0], [1.0])

    assert [[], [21, 92]] == [into.row(request) for request in range(2)]


def test_survival_is_the_product_of_the_rates() -> None:
    """0.7 each of three: 0.7, 0.49, 0.343 reach the positions, and 2.533 tokens come of a step."""
    chance, rates = random.Random(1), [0.7] * 3
    reached, tokens = [0] * 3, 0
    for _ in range(20_000):
        into = Into()
        accept(into, [3], [1, 2, 3], [8, 8, 8], [9], None, [chance.random() for _ in rates], rates)
        row = into.row(0)
        tokens += len(row)
        for position in range(3):
            reached[position] += row[: position + 1] == [1, 2, 3][: position + 1]

    assert all(
        abs(count / 20_000 - truth) < 0.01 for count, truth in zip(reached, (0.7, 0.49, 0.343), strict=True)
    )
    assert abs(tokens / 20_000 - 2.533) < 0.02
