"""What keeps a web page in an operator's browser from changing the service; pure.

A page may send requests to loopback without a word from its user.  Command lines send no `Origin`.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from app import errors


def refuse_a_web_page(headers: Headers) -> None:
    """Raise ApiError for a request that a browser sends from anywhere but this very address."""
    host = headers.get("host", "").lower()
    for origin in headers.getlist("origin"):
        if not _same(origin.lower(), host):
            raise errors.admin_not_allowed(
                "A web page from elsewhere may not change this service (Origin differs from Host, or Host "
                "is a name that could lead anywhere). Use the twinpool command, or send no Origin header."
            )


def _same(origin: str, host: str) -> bool:
    """Whether both are one address; of names only localhost, since another's owner chooses what it means."""
    try:
        found = urlsplit(origin)
        name = found.hostname or ""
    except ValueError:
        return False
    return found.netloc == host and (name == "localhost" or _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
