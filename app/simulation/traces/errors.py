"""The one error of traces."""

from __future__ import annotations


class TraceError(Exception):
    """The trace cannot be had; the message says where, by file and line, what is wrong, and what to do."""
