"""The operator's routes under /admin: hold, release, overrides, policy and why, asked of the controller.

A change is refused from a web page, and altogether where the service listens to others without keys.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app import errors
from app.admin_bodies import WHO_MAX, Body, HoldBody, OverrideBody, ReleaseBody, read
from app.admin_guard import refuse_a_web_page
from app.errors import ApiError
from autoscaling.one_line import one_line
from deployments.request_body import BodyTooLargeError, read_body

logger = logging.getLogger("ray.serve")

CALL_LIMIT_S = 3.0
MAX_BODY = 64 << 10  # bytes; a hold or an override is a few hundred
RECORDS = ("decision", "move", "request")
ID_MAX = 100  # characters; every id of our own is far shorter
REQUEST_ID_MAX = 140  # characters; a caller's has at most 128, and the engine's a suffix
_REVISION = re.compile("[0-9]{1,9}")  # no file is edited a billion times

_B = TypeVar("_B", bound=Body)
_Handler = Callable[[Request], Awaitable[dict[str, Any]]]


class _Command(Protocol):
    def remote(self, name: str, arguments: dict[str, Any]) -> Awaitable[dict[str, Any]]: ...


class ControllerHandle(Protocol):
    """What is used of the controller's handle: one method, called by name with plain arguments."""

    @property
    def command(self) -> _Command:
        """The controller's `command`; its answer has `status` and either `body` or `error` and `field`."""


class Admin:
    """The routes; `writable` is False where whoever reaches the service could change it.

    `limit_s` is the longest wait for the controller.
    """

    def __init__(
        self, controller: ControllerHandle, writable: bool, *, limit_s: float = CALL_LIMIT_S
    ) -> None:
        self._controller = controller
        self._writable = writable
        self._limit_s = limit_s

    def routes(self) -> list[Route]:
        """All paths under /admin but the status, for the ingress's application."""
        return [
            Route("/admin/hold", self._changing(self._hold), methods=["POST"]),
            Route("/admin/release", self._changing(self._release), methods=["POST"]),
            Route("/admin/overrides", self._overrides, methods=["GET", "POST"]),
            Route("/admin/overrides/{id}", self._changing(self._clear), methods=["DELETE"]),
            Route("/admin/policy", _answering(self._policy), methods=["GET"]),
            Route("/admin/policy/{revision}", _answering(self._policy_text), methods=["GET"]),
            Route("/admin/why/{kind}", _answering(self._why), methods=["GET"]),
        ]

    async def _hold(self, request: Request) -> dict[str, Any]:
        return await self._change("hold", (await _body(request, HoldBody)).model_dump(mode="json"))

    async def _release(self, request: Request) -> dict[str, Any]:
        return await self._change("release", (await _body(request, ReleaseBody)).model_dump(mode="json"))

    async def _overrides(self, request: Request) -> Response:
        if request.method == "POST":
            return await self._changing(self._set)(request)
        return await _answering(self._list)(request)

    async def _set(self, request: Request) -> dict[str, Any]:
        found = await _body(request, OverrideBody)
        return await self._change("override_set", found.model_dump(mode="json"))

    async def _list(self, _request: Request) -> dict[str, Any]:
        return await self._ask("override_list", {})

    async def _clear(self, request: Request) -> dict[str, Any]:
        who = request.query_params.get("who", "")
        if not 1 <= len(who) <= WHO_MAX:
            raise errors.refused_field(
                "who", f"Say who clears it, as ?who=NAME of at most {WHO_MAX} characters."
            )
        try:
            one_line(who)
        except ValueError as error:
            raise errors.refused_field("who", f"who: {error}.") from None
        return await self._change("override_clear", {"id": _id(request.path_params["id"]), "who": who})

    async def _policy(self, _request: Request) -> dict[str, Any]:
        return await self._ask("policy", {})

    async def _policy_text(self, request: Request) -> dict[str, Any]:
        revision = request.path_params["revision"]
        if not _REVISION.fullmatch(revision):
            raise errors.nothing_named(
                "There is no such revision: it is a number of at most nine digits, one of GET /admin/policy.",
                "revision",
            )
        return await self._ask("policy_text", {"revision": int(revision)})

    async def _why(self, request: Request) -> dict[str, Any]:
        kind = request.path_params["kind"]
        if kind not in RECORDS:
            raise errors.invalid_value("kind", kind, RECORDS)
        most = REQUEST_ID_MAX if kind == "request" else ID_MAX
        wanted = _id(request.query_params.get("id"), most) or None
        return await self._ask("why", {"kind": kind, "id": wanted})

    async def _ask(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await self._command(name, arguments, changing=False)

    async def _change(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await self._command(name, arguments, changing=True)

    async def _command(self, name: str, arguments: dict[str, Any], *, changing: bool) -> dict[str, Any]:
        try:
            # Not wait_for: in Python 3.11 it can swallow a cancel that meets the answer.
            async with asyncio.timeout(self._limit_s):
                found = await self._controller.command.remote(name, arguments)
        except Exception as error:
            logger.warning(f"the controller did not answer {name}: {type(error).__name__}: {error}")
            reason = f"no answer to {name} within {self._limit_s:g} seconds, or it is restarting"
            raise errors.no_controller(reason, changing=changing) from error
        if found["status"] == 200:
            body: dict[str, Any] = found["body"]
            return body
        raise _refusal(found)

    def _changing(self, handler: _Handler) -> Callable[[Request], Awaitable[Response]]:
        """Like `_answering`, for what changes the service: refused before anything is read."""

        async def guarded(request: Request) -> dict[str, Any]:
            if not self._writable:
                raise errors.admin_not_allowed(
                    "This service listens beyond this machine without keys, so nobody may change it over "
                    "HTTP. Listen on 127.0.0.1 to use hold and override, or edit the policy file: "
                    "`spec.mode: hold` holds, and `spec.overrides` overrides."
                )
            refuse_a_web_page(request.headers)
            return await handler(request)

        return _answering(guarded)


def _answering(handler: _Handler) -> Callable[[Request], Awaitable[Response]]:
    """JSON of what `handler` found, or the error object."""

    async def answer(request: Request) -> Response:
        try:
            return JSONResponse(await handler(request))
        except ApiError as error:
            kept = {name.decode(): value.decode() for name, value in errors.headers(error)}
            return Response(errors.body(error), status_code=error.status, headers=kept)

    return answer


def _id(given: str | None, most: int = ID_MAX) -> str | None:
    """An id that there may be; raises ApiError for one that is longer than any."""
    if given is not None and len(given) > most:
        raise errors.nothing_named(f"Nothing has this id: it is longer than {most} characters.", "id")
    return given


async def _body(request: Request, model: type[_B]) -> _B:
    try:
        found = await read_body(request.receive, MAX_BODY)
    except BodyTooLargeError:
        raise errors.request_too_large(MAX_BODY) from None
    # A caller who left reads no answer: the error only ends the request.
    return read(request.headers.get("content-type", ""), found or b"", model)


def _refusal(found: Mapping[str, Any]) -> ApiError:
    """The controller's refusal in the catalogue's words."""
    words, field = str(found["error"]), found.get("field")
    match found["status"]:
        case 400:
            return errors.refused_field(field, words)
        case 404:
            return errors.nothing_named(words, field)
        case 409:
            return errors.conflict(words)
        case _:
            return errors.no_controller(words.rstrip("."), changing=False)
