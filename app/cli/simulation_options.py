"""Options of the commands that simulate, alike for each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.output import path_of

PolicyArgument = Annotated[
    Path,
    typer.Argument(
        metavar="POLICY",
        help="A policy file, a folder with one *.yaml, or -; its budget.max says how many accelerators "
        "there are.",
    ),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        help="The engines: a profile.json of `twinpool bench`, or built-in: h100-8b, h100-70b, a100-8b, "
        "a100-70b, h200-8b, h200-70b (EAGLE-3 drafts), each also with -ngram, or cpu.",
    ),
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, max=999_999, help="The same seed gives the same result.")
]
StartOption = Annotated[
    float | None,
    typer.Option("--start-seconds", help="Until a new replica serves. (default: as the profile measured it)"),
]
IngressesOption = Annotated[
    int, typer.Option("--ingresses", min=1, max=64, help="Ingresses that share the requests.")
]
KindOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="event follows every request and engine step, fluid shares of them. "
        "(default: event up to 64 replicas)",
    ),
]
PriceOption = Annotated[
    float | None,
    typer.Option("--accelerator-hour-price", help="Price of one accelerator-hour, to see what it costs."),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        parser=path_of,
        metavar="DIR",
        help="Folder for scores.json, report.md, report.html and its plots.",
    ),
]
LogOption = Annotated[
    Path | None,
    typer.Option(
        "--log",
        parser=path_of,
        metavar="DIR",
        help="The folder that `twinpool serve --record DIR` has written.",
    ),
]
