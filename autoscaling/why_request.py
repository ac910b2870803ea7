"""Plain words of one recorded request: what was asked, what the pools looked like, what became of it.

As in `why`, what is absent or null is unknown and said to be, and an unknown word is shown as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from autoscaling.request_line import Outcome
from autoscaling.request_words import (
    OUTCOMES,
    POOLS,
    PREDICTED,
    REPLICAS,
    ROUTES,
    UNMEASURED,
    VERDICTS,
)
from autoscaling.why_values import Record, figure, known, mapping, moment, objects, seconds


def explain_request(record: Record) -> str:
    """Several lines of plain text on one recorded request."""
    return "".join(f"{line}\n" for line in _request(record))


def _request(record: Record) -> Iterator[str]:
    at = moment(record.get("wall"))
    yield f"request {known(record.get('id'))} at {at}, inside the engine {known(record.get('engine_id'))}"
    yield f"asked: {_asked(record)}"
    yield f"work: {_work(record)}"
    if features := mapping(record.get("features")):
        yield f"  seen in it: {_pairs(features)}"
    decision = mapping(record.get("decision"))
    yield from _pools(mapping(decision.get("pools")))
    yield from _replicas(decision.get("replicas"))
    yield f"route: {_route(record)}"
    yield f"waited: {seconds(record.get('waited_s'))} in the ingress"
    yield f"outcome: {_outcome(record)}"
    yield from _attempts(record)
    yield from _answer(record)
    yield from _judged(record)


def _asked(record: Record) -> str:
    tier, wanted = record.get("tier"), record.get("tier_requested")
    if tier is None or "tier_requested" not in record:
        words = f"tier {known(tier)}"
    elif wanted is None:
        words = f"tier {known(tier)}, the default: the caller named none"
    elif wanted == tier:
        words = f"tier {tier}, as the caller said"
    else:
        words = f"tier {known(tier)}; the caller said {wanted}, which is above what it may have"
    count = record.get("sequences")
    streamed = (
        "" if (stream := record.get("stream")) is None else ", streamed" if stream else ", not streamed"
    )
    return f"{words}; {known(count)} sequence{'' if count == 1 else 's'}{streamed}"


def _work(record: Record) -> str:
    words = f"class {known(record.get('workload'))}, because of {known(record.get('workload_reason'))}"
    steps = record.get("tokens_per_step")
    predicted = "unknown" if steps is None else f"predicted to be {figure(steps)}"
    return f"{words}; tokens per step with drafts {predicted}"


def _pools(pools: Record) -> Iterator[str]:
    if not pools:
        yield "pools: not known"
        return
    yield "pools when it was routed:"
    for name, found in pools.items():
        pool = mapping(found)
        yield f"  {name}: {_word(pool.get('verdict'), POOLS)}"
        yield f"    {_room(pool)}"
        yield f"    {_prediction(pool)}"


def _room(pool: Record) -> str:
    accepting, able, reserve = pool.get("accepting"), pool.get("able"), pool.get("reserve")
    kept = f", {reserve} of each replica reserved for interactive requests" if reserve else ""
    return (
        f"{known(accepting)} replicas took work, {known(able)} of them could serve it; the emptiest had "
        f"{known(pool.get('load'))} of {known(pool.get('limit'))} sequences, "
        f"{known(pool.get('free'))} free{kept}"
    )


def _prediction(pool: Record) -> str:
    basis = pool.get("from")
    if basis == UNMEASURED:
        return "TTFT and TPOT not predicted: nothing is measured yet"
    first, each = pool.get("predicted_ttft_s"), pool.get("predicted_tpot_s")
    by = "" if basis is None else f", {PREDICTED.get(str(basis), str(basis))}"
    return f"predicted there: TTFT {seconds(first)}, TPOT {seconds(each)}{by}"


def _replicas(replicas: Any) -> Iterator[str]:
    listed = objects(replicas)
    if not listed:
        return
    yield "replicas compared:"
    for one in listed:
        why = one.get("why")
        chosen = f"taken: {_word(why, REPLICAS)}" if one.get("chosen") else "not taken"
        yield (
            f"  {known(one.get('id'))}: {chosen}; {known(one.get('load'))} sequences open, "
            f"work left {figure(one.get('work'))}"
        )


def _route(record: Record) -> str:
    pool = record.get("pool")
    if pool is None:
        return "none: it reached no replica"
    reason = _word(record.get("reason"), ROUTES)
    return f"{pool}, replica {known(record.get('replica'))}, because {reason}"


def _outcome(record: Record) -> str:
    status, code = record.get("status"), record.get("code")
    words = _word(record.get("outcome"), OUTCOMES)
    told = f", HTTP {status}" if status is not None else ""
    named = f", {code}" if code is not None else ""
    return f"{words}{told}{named}, {seconds(record.get('e2e_s'))} after its arrival"


def _attempts(record: Record) -> Iterator[str]:
    attempts = record.get("attempts")
    if attempts not in (None, 0, 1):
        yield f"  {attempts} replicas were asked"
    if record.get("wider"):
        yield "  one refused a parameter with 400, and a wider one answered: a gap of the capability table"


def _answer(record: Record) -> Iterator[str]:
    """What the engine counted."""
    generated = record.get("generated_tokens")
    if generated is None:
        if record.get("outcome") == Outcome.OK:
            yield "tokens: unknown, the engine's record of it has not come"
        return
    end = record.get("finish_reason")
    prompt = known(record.get("prompt_tokens"))
    yield f"tokens: {prompt} of the prompt, {generated} generated, ended by {known(end)}"
    yield (
        f"  in the engine: {seconds(record.get('queued_s'))} queued, {seconds(record.get('prefill_s'))} "
        f"prefill, {seconds(record.get('decode_s'))} decode"
    )
    if acceptance := mapping(record.get("acceptance")):
        yield f"  drafts: {_pairs(acceptance)}"


def _judged(record: Record) -> Iterator[str]:
    judged_by = mapping(record.get("decision")) if record.get("pending") else record
    objective = mapping(judged_by.get("objective"))
    for name, label in (("ttft_s", "TTFT"), ("tpot_s", "TPOT")):
        found, promised = record.get(name), objective.get(name)
        if found is None and promised is None:
            continue
        against = "no objective" if promised is None else f"objective {seconds(promised)}"
        yield f"{label}: {seconds(found)}, {against}"
    if record.get("pending"):
        yield "attainment: not judged yet, the engine's record of it is awaited"
    elif record.get("verdict") is not None:
        yield f"attainment: {_word(record.get('verdict'), VERDICTS)}"
    elif "verdict" not in record:
        yield "attainment: unknown"
    elif any(objective.get(name) is not None for name in ("ttft_s", "tpot_s")):
        yield "attainment: does not count"
    else:
        yield "attainment: does not count, the tier has no objective"


def _word(word: Any, words: Mapping[Any, str]) -> str:
    """The sentence for a word, with the word; the words of an enumeration are equal to their text."""
    return f"{words[word]} ({word})" if isinstance(word, str) and word in words else known(word)


def _pairs(found: Record) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in found.items())


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return figure(value) if isinstance(value, float) or value is None else str(value)
