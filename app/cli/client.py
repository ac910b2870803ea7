"""The commands' HTTP client: where the service is, one call, and what to say when it fails."""

from __future__ import annotations

import contextlib
import getpass
import http.client
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

from app.cli.output import FINDING, fail, printable
from autoscaling.one_line import one_line
from autoscaling.overrides import BY_POLICY
from deployments.ports import is_loopback

DEFAULT_URL = "http://127.0.0.1:8000"
CALL_LIMIT_S = 10.0
LONGEST_WHO = 100  # characters, as the service
NOT_OURS = "the answer is not twinpool's"
ODD = (KeyError, TypeError, ValueError, AttributeError)  # of reading an answer that another program gave
MEND = (
    "start the service with `twinpool serve`, or name its address with TWINPOOL_URL or --url; "
    "on Kubernetes `kubectl port-forward` brings it here"
)


class NotReachableError(Exception):
    """Nothing that is twinpool answers at the address."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"no answer from {url}: {reason}")
        self.reason = reason


class RefusedError(Exception):
    """The service answered with an error object; `code` is its word for it."""

    def __init__(self, message: str, code: str, status: int) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


def address(url: str | None) -> str:
    """The service's address without a slash at its end; ends the command for one that is not HTTP."""
    found = url or os.environ.get("TWINPOOL_URL") or DEFAULT_URL
    if "://" not in found:
        found = f"http://{found}"
    try:
        parts = urlsplit(found)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        fail(f"{found} is no address of a service", f"write it as {DEFAULT_URL}")
    return found.rstrip("/")


def address_note(url: str | None) -> str:
    """What is assumed of an address that is not said in full; empty for one that is."""
    found = url or os.environ.get("TWINPOOL_URL")
    if not found:
        return f"neither TWINPOOL_URL nor --url is set: the service is asked at {DEFAULT_URL}"
    return "" if "://" in found else f"{found} has no scheme: the service is asked at http://{found}"


def call(url: str, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """The JSON object that the service answers; a warning in it is printed.

    Raises NotReachableError or RefusedError.
    """
    request = urllib.request.Request(  # noqa: S310  # `address` lets only http and https pass
        f"{url}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"accept": "application/json"}
        | ({} if body is None else {"content-type": "application/json"}),
    )
    try:
        with _opener(url).open(request, timeout=CALL_LIMIT_S) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        raise _said(url, error) from error
    except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
        raise NotReachableError(url, str(getattr(error, "reason", None) or error)) from error
    if not isinstance(found, dict):
        raise NotReachableError(url, NOT_OURS)
    if found.get("warning"):
        print(f"warning: {printable(str(found['warning']))}", file=sys.stderr)
    return found


def get(url: str, path: str) -> dict[str, Any]:
    """Ask for what `path` shows; raises as `call` does."""
    return call(url, "GET", path)


def quoted(part: str) -> str:
    """One part of a path, such as an id that a user typed."""
    return quote(part, safe="")


def operator(who: str | None) -> str:
    """Who asks: `who`, or else the user of this machine; ends the command for a name that cannot be used."""
    found = _user() if who is None else who.strip()
    mend = "say who asks with --who NAME"
    if not found:
        fail("--who is empty", mend)
    if len(found) > LONGEST_WHO:
        fail(f"--who has {len(found)} characters, more than {LONGEST_WHO}", mend)
    if found == BY_POLICY:
        fail(f"{found} is no operator's name: it stands for the policy file wherever a name is shown", mend)
    try:
        return one_line(found)
    except ValueError as error:
        fail(f"--who {error}", mend)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """End the command with what the user reads: exit code 2 without an answer, 1 for a refusal."""
    try:
        yield
    except NotReachableError as error:
        fail(str(error), MEND)
    except RefusedError as error:
        fail(str(error), NEXT.get(error.code, "correct what the message names"), FINDING)


NEXT = {
    "not_ready": "look at `twinpool status`, and ask again when the controller is reachable",
    "not_found": "see what there is: `twinpool override list`, `twinpool policy history`, `twinpool status`",
    "conflict": "look at `twinpool status` for what stands against it",
    "admin_not_allowed": "do it where the service may be changed, or through the policy file",
    "internal_error": "look into the service's log",
}


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number without a name
        return f"uid {os.getuid()}"


def _opener(url: str) -> urllib.request.OpenerDirector:
    """Without the environment's HTTP proxy on loopback: no proxy can reach this machine's own."""
    handlers = [urllib.request.ProxyHandler({})] if is_loopback(urlsplit(url).hostname or "") else []
    return urllib.request.build_opener(*handlers)


def _said(url: str, error: urllib.error.HTTPError) -> NotReachableError | RefusedError:
    try:
        found = json.load(error)["error"]
        return RefusedError(str(found["message"]), str(found["code"]), error.code)
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return NotReachableError(url, f"HTTP status {error.code}, and the answer is not twinpool's")
