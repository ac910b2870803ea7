"""What a browser would make of a page: its tags, whether each was closed, its headings and its text."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """A page that was read to its end; a tag that closes another one fails the test."""

    VOID = frozenset({"meta", "br", "hr", "img", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.titles: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop(), self.getpos()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.titles.append(data)
        if not {"style", "svg"} & set(self.open):
            self.text.append(data)
