"""The words of docs/evaluation.md around its figures; one sentence per line."""

# ruff: noqa: E501  # a sentence of the page is a line
from __future__ import annotations

from typing import Final

from benchmarks.evaluate_plan import (
    BATCH_EXCESS,
    BATCH_TIE,
    DELAY_S,
    DRAIN_LIMIT_S,
    FIRST_SPECULATIVE,
    FLEET,
    FLEET_HOURS,
    INGRESSES,
    INTERACTIVE_REPLICAS,
    MISSES_TIE,
    MOST_STATIC_MISSES,
    OURS,
    PLAIN_LIMIT,
    PROFILE,
    REPLICAS,
    RIVAL,
    RULES,
    SIZED_AT,
    SNAPSHOT_DELAY_S,
    STANDARD_TPOT_S,
    STOP_S,
    TPOT_S,
    TTFT_S,
)

HEAD: Final = f"""\
# Evaluation

How well does twinpool share one fleet between callers who wait and batch work that does not?
This page answers with the simulator: many policies, among them the default one, serve the same requests on the same engines.
The default policy is called `{OURS}` here.
What it does not reach is the bar that a better controller has to clear.

This page is written by `make evaluate`; its misses, batch tokens, gaps and seconds stand in `benchmarks/results/evaluate.json`, too.
Do not edit it: change `benchmarks/evaluate_plan.py` or the code, and run `make evaluate` again.
With the published traces in a folder, run `make evaluate ARGS="--data FOLDER"`; without them, requests are made that fit their published statistics.
The same seeds and the same files give the same figures, but for the seconds that a simulation takes.
"""

QUICK_WORDS: Final = """\
**This is the page of a quick run: few seeds, short traces, and fewer policies than the real one.**
It shows that everything runs, and nothing about the policies.
"""

SIMULATED: Final = f"""\
A fleet has {REPLICAS} replicas of the built-in profile `{PROFILE}`: Llama-3.1-8B on an H100, with EAGLE-3 drafts of three tokens in the speculative pool.
Its step costs and acceptance are published measurements (SpecDecode-Bench, arXiv 2601.11580).
The event model goes through every engine step: continuous batching, prompts in parts, memory, drafts that are accepted or not, drains and starts.
Routing, admission and the decisions of the default policy are the code that serves real requests.

An interactive request is in time when its first token came within {TTFT_S:g} s and every further one took {1000 * TPOT_S:g} ms or less on average.
One that is late, refused or broken off is a miss.
Batch work has no objective and arrives in excess, so that whatever interactive work leaves of the fleet can be sold as batch tokens.
So a policy has two figures: the share of interactive requests that it misses, and the batch tokens per second that it sells.

How much arrives follows from the engines and is not tuned.
Interactive work comes at the rate that {INTERACTIVE_REPLICAS:g} speculative replicas do at {1000 * SIZED_AT * TPOT_S:g} ms per token on average, which leaves room for those who fare worse, by the closed form of the step cost and mean lengths.
Batch work comes at {BATCH_EXCESS:g} times the rate that all {REPLICAS} replicas do as plain ones, each as full as memory and engine allow.
Where a trace has to come faster than it was recorded, copies of it are laid over each other, each shifted by a random time; that evens bursts out, as with more clients of the same kind.

A replica that is asked for serves after {{delays}} s: weights that lie ready take a second, a load with compilation a minute or more.
A replica that has to go finishes what it has, for at most {DRAIN_LIMIT_S:g} s, and its place is free {STOP_S:g} s later.
{INGRESSES} ingresses see the fleet {SNAPSHOT_DELAY_S:g} s late.
The plain pool is held to {1000 * STANDARD_TPOT_S:g} ms per token, as tier standard would be.
A plain replica takes {PLAIN_LIMIT} requests at once, for the memory holds no more of the batch work.
Two pools begin with {FIRST_SPECULATIVE} speculative and {REPLICAS - FIRST_SPECULATIVE} plain replicas; everything else of the policy file is the default.
Each run takes {{minutes}} minutes of requests, with {{seeds}} seeds; every policy meets the same requests of a seed.
Intervals are Student's t with 95 % over seeds.

The loads:
"""

FOUND: Final = f"""\
A policy dominates another one when it is no worse in both figures and better for sure in at least one.
For sure means that the 95 % interval of the difference, seed by seed, leaves out 0.
Differences of {100 * MISSES_TIE:g} percentage points of misses, or of {100 * BATCH_TIE:g} % of batch tokens, count as ties.
A policy that nobody dominates is Pareto-optimal: whoever wants more of the one figure pays with the other.
"""

PANEL_WORDS: Final = f"""\
In the plots the best place is the upper left corner: few misses, many batch tokens.
A filled marker is Pareto-optimal, an open one is dominated, the dashed line joins the Pareto-optimal ones, and the star is the default policy.
`twinpool-no-backfill` is the default policy with one word changed: batch work never enters the speculative pool.
`hindsight` knows every arrival beforehand: it shows what a controller could have had, and competes with nobody.

In the tables, `switching %` is the share of the accelerators' time in which replicas started or drained.
`plain %` is the mean share of plain replicas.
`short %` is the share of the time in which callers wanted more of the speculative pool than its limits hold.
At {DELAY_S:g} s all policies are compared.
At the other delays `hindsight` and `twinpool-no-backfill` are left out, and the simple rules ({", ".join(f"`{name}`" for name in RULES)}) are tried on the mixed load only.
A run in which nothing moved is the same at every delay, and is not made again.
A policy with one kind of engine moves labels at once, so that its moves cost nothing, and the delay changes nothing for it.
"""

SPLITS: Final = f"""\
A static split never moves a replica, so that it is a careful operator without a controller.
The best one is the split with most batch tokens among those that miss {100 * MOST_STATIC_MISSES:g} % or less.
It is chosen after the fact, with the figures in hand; an operator would have to guess it.
"""

BELIEFS: Final = f"""\
The controller and the ingresses go by a profile, which is measured and may be off.
Here one thing at a time is off, on the conversations, where a started replica serves after {DELAY_S:g} s, with {{sensed}} of the seeds.
What drafts bring is believed to be more or less than it is, or steps to cost more or less, or ingresses see the fleet late.
Beside these, backfill is switched off: then batch work never enters the speculative pool.
The engines stay as they are.
`{RIVAL}` is the strongest rival: the same routing and controller over one kind of engine, which sets its draft length by its load.
"""

MODELS: Final = """\
The fluid model carries shares of requests in place of requests, so that large fleets can be simulated.
Both models serve the same loads under the default policy; the gap of batch tokens is relative to the event model.
"""

LONG: Final = """\
A pool gives a replica only after minutes of spare capacity, which the runs above are too short for.
Here each policy serves {minutes} minutes of every load in the fluid model, with all {seeds} seeds, and a started replica serves after {delays} s.
What moves cost, and what a late replica costs, stands beside what fixed splits bring on the same requests.
"""

FLEETS: Final = f"""\
{FLEET_HOURS:g} hours of conversations and batch work that swing as a day does, up to the load above at the peak, in the fluid model, each fleet in a fresh process on one core.
{FLEET:,} replicas must take 60 s or less and 1 GiB or less.
"""

LIMITS: Final = """\
- The engines are a cost model: linear in tokens and context, with jitter on every step; kernels, graphs and memory traffic are not simulated.
- Acceptance is drawn by class of work, with requests that differ; it does not depend on the length of the context.
- Prefix caches are not simulated, so a move loses nothing but its time, and routing to where a prefix lies gains nothing.
- No replica, node or network fails, and a start takes as long as it is told.
- Copies of a trace stand for more clients; a single client that is as bursty and as large would be harder to serve.
- Runs are short: by default a pool gives a replica only after five minutes of spare capacity, so that those of the event model show what a policy takes and hardly what it gives.
- The published traces are of one hour of 2023; they show neither a day nor a week.
- Batch work is always there; with less of it, fewer replicas would have something to do, and policies would differ less.
- One model on one kind of accelerator: where drafts gain more or less, or cost more, the order of the policies may be another one.
"""
