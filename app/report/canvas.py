"""A plot as SVG text: the same text for the same numbers, on white, in the reader's own sans-serif font."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito: told apart by colour-blind readers too; the dark ones first.
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
GREY: Final = "#6b7280"
STYLE: Final[dict[str, Any]] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, selected and read aloud
    "font.family": "sans-serif",
    "font.size": 10.5,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e7eb",
    "legend.frameon": False,
    "figure.facecolor": "white",
}


def svg(name: str, title: str, draw: Callable[[Figure], None], size: tuple[float, float]) -> str:
    """Draw a figure of `size` inches; `name` keeps its ids apart from those of other plots of a page."""
    from matplotlib import rc_context  # noqa: PLC0415  # heavy: only when a report is made
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    style: Any = {**STYLE, "svg.hashsalt": name}
    with rc_context(style):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        out = io.StringIO()
        FigureCanvasSVG(figure)
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return _inlined(out.getvalue(), name, title)


def _inlined(text: str, name: str, title: str) -> str:
    """Only the element, with ids of its own and a title for those who cannot see it."""
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(xlink:href="|url\()#', rf"\g<1>#{name}-", text)
    text = re.sub(r"font: ([^;\"]*?)'[^;\"]*sans-serif", r"font: \1sans-serif", text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)


def colour(at: int) -> str:
    """The colour of the line number `at`."""
    return COLOURS[at % len(COLOURS)]


def marker(at: int) -> str:
    """The marker of the line number `at`."""
    return MARKERS[at % len(MARKERS)]


def legend(figure: Figure, axes: Axes, columns: int = 3) -> None:
    """One legend below all panels, with every label once."""
    seen: dict[str, Any] = {}
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
        seen.setdefault(label, handle)
    if seen:
        figure.legend(list(seen.values()), list(seen), loc="outside lower left", ncols=columns)


@contextmanager
def panel(axes: Axes, title: str, x: str | None = None, y: str | None = None) -> Iterator[Axes]:
    """Axes with their title and labels, set after what is drawn on them."""
    yield axes
    axes.set_title(title)
    if x is not None:
        axes.set_xlabel(x)
    if y is not None:
        axes.set_ylabel(y)
