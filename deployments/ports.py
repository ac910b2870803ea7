"""Free ports on the loopback address, and which addresses are loopback."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """`count` different ports that nothing listens on at this moment."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            probe = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            probe.bind(("127.0.0.1", 0))
            found.append(int(probe.getsockname()[1]))
        return found


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`; a name we cannot judge counts as reachable."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
