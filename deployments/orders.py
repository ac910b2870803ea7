"""An operator's orders and questions to the controller, by name, with plain arguments and answers.

An answer is `{"status": 200, "body": {...}}` or `{"status": 4xx, "error": words, "field": name or None}`.
An order is in the audit and in the state before it is answered; where nothing can be written it acts all
the same, and the answer has a `warning`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from autoscaling.decisions import Hold, HoldBy
from autoscaling.instants import rfc3339
from autoscaling.overrides import Override, problems
from autoscaling.request_book import MOST, RequestBook
from autoscaling.request_record import as_fields
from autoscaling.types import Role
from deployments.config import ControllerSettings
from deployments.control_loop import ControlLoop
from deployments.control_memory import ControlMemory
from deployments.control_status import hold_status, override_status, policy_status
from deployments.policy_use import acting_document

MOST_OVERRIDES = 50  # at run time; each is in every saved state, and nobody reads more

CHANGING = ("hold", "release", "override_set", "override_clear")

Answer = dict[str, Any]
Arguments = Mapping[str, Any]


class RefusedError(Exception):
    """What was asked cannot be done: status, words, field."""

    def __init__(self, status: int, words: str, field: str | None = None) -> None:
        super().__init__(words)
        self.status = status
        self.words = words
        self.field = field


class Orders:
    """The controller's one door for operators."""

    def __init__(
        self,
        settings: ControllerSettings,
        loop: ControlLoop,
        kept: ControlMemory,
        requests: RequestBook,
        wall: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._loop = loop
        self._kept = kept
        self._requests = requests
        self._wall = wall
        self._now = loop.now
        self._known: dict[str, Callable[[Arguments], Awaitable[Answer]]] = {
            "hold": self._hold,
            "release": self._release,
            "override_set": self._override_set,
            "override_list": self._override_list,
            "override_clear": self._override_clear,
            "policy": self._policy,
            "policy_text": self._policy_text,
            "why": self._why,
        }

    async def take(self, name: str, arguments: Arguments) -> Answer:
        """Carry out one order; an unknown one is answered with what is known."""
        order = self._known.get(name)
        if order is None:
            return {"status": 404, "error": f"{name} is none of {', '.join(self._known)}", "field": None}
        if self._kept.fenced or self._loop.stopped:
            return {"status": 503, "error": "this controller is being replaced: send it again", "field": None}
        try:
            if name in CHANGING:
                async with self._loop.changing:
                    body = await order(arguments)
            else:
                body = await order(arguments)
        except RefusedError as refused:
            return {"status": refused.status, "error": refused.words, "field": refused.field}
        if name in CHANGING and self._kept.problem is not None:
            body = body | {"warning": f"it acts now, and a restart would lose it: {self._kept.problem}"}
        return {"status": 200, "body": body}

    async def _hold(self, arguments: Arguments) -> Answer:
        wall = self._wall()
        for_s = arguments.get("for_s")
        hold = Hold(
            by=HoldBy.OPERATOR,
            reason=str(arguments["reason"]),
            since=wall,
            expires=None if for_s is None else wall + float(for_s),
            who=arguments.get("who"),
        )
        self._loop.state.set_hold(hold, self._now(), wall)
        await self._loop.keep("hold", {"hold": hold}, ("holds",))
        return {"hold": hold_status(hold)}

    async def _release(self, arguments: Arguments) -> Answer:
        held = self._loop.state.hold
        if held is not None:
            self._loop.state.set_hold(None, self._now(), self._wall())
            await self._loop.keep("release", {"who": arguments.get("who"), "hold": held}, ("holds",))
        return {"released": held is not None}

    async def _override_set(self, arguments: Arguments) -> Answer:
        wall, state = self._wall(), self._loop.state
        if len(state.overrides) >= MOST_OVERRIDES:
            raise RefusedError(
                409, f"{MOST_OVERRIDES} overrides are set at run time, no more are taken: clear some, or all"
            )
        new = Override(
            id=f"o-{secrets.token_hex(3)}",
            pool=Role(arguments["pool"]),
            replicas=arguments.get("replicas"),
            minimum=arguments.get("min_replicas"),
            maximum=arguments.get("max_replicas"),
            since=wall,
            until=wall + float(arguments["for_s"]),
            reason=str(arguments["reason"]),
            by=str(arguments.get("who") or "unknown"),
        )
        wrong = problems(new, acting_document(state, self._loop.default), state.overrides, wall)
        if wrong:
            raise RefusedError(400, "; ".join(wrong))
        self._refuse_what_serve_clamps(new)
        state.set_overrides((*state.overrides, new), self._now(), wall)
        await self._loop.keep("override", {"override": new}, ("overrides",))
        return {"override": override_status(new)}

    def _refuse_what_serve_clamps(self, new: Override) -> None:
        pool = self._settings.pool(new.pool)
        asked = {"replicas": new.replicas, "min_replicas": new.minimum, "max_replicas": new.maximum}
        for name, value in asked.items():
            if value is not None and value < pool.floor:
                raise RefusedError(
                    400,
                    f"{name} is {value}, but the {new.pool} pool cannot be empty: "
                    "set may_be_empty in the settings of the service",
                    name,
                )

    async def _override_list(self, _: Arguments) -> Answer:
        return {"overrides": [override_status(one) for one in self._loop.state.overrides]}

    async def _override_clear(self, arguments: Arguments) -> Answer:
        state, wanted = self._loop.state, arguments["id"]
        cleared = tuple(one for one in state.overrides if wanted in ("all", one.id))
        if not cleared and wanted != "all":
            known = ", ".join(one.id for one in state.overrides) or "there are none"
            raise RefusedError(404, f"no override {wanted} was set at run time; known: {known}", "id")
        left = tuple(one for one in state.overrides if one not in cleared)
        state.set_overrides(left, self._now(), self._wall())
        if cleared:
            words = {"who": arguments.get("who"), "overrides": cleared}
            await self._loop.keep("override_clear", words, ("overrides",))
        return {"cleared": [one.id for one in cleared]}

    async def _policy(self, _: Arguments) -> Answer:
        book = self._loop.state.book
        history = [
            msgspec.to_builtins(record) | {"at": rfc3339(record.at)} for record in reversed(book.revisions)
        ]
        return policy_status(self._settings, self._loop.state) | {"history": history}

    async def _policy_text(self, arguments: Arguments) -> Answer:
        wanted, book = arguments.get("revision"), self._loop.state.book
        record = next((one for one in book.revisions if one.revision == wanted), None)
        if record is None or type(wanted) is not int:
            shown = wanted if type(wanted) is int and 0 <= wanted < 2**53 else "of that number"
            raise RefusedError(404, f"the text of revision {shown} is not kept", "revision")
        text = book.text_of(wanted)
        if text is None:
            text = await asyncio.to_thread(self._kept.policy_text, wanted)
        if text is None:
            raise RefusedError(404, f"the text of revision {wanted} is not kept", "revision")
        plain: Answer = msgspec.to_builtins(record)
        return plain | {"at": rfc3339(record.at), "text": text}

    async def _why(self, arguments: Arguments) -> Answer:
        kind, wanted = arguments.get("kind"), arguments.get("id")
        if kind == "move":
            return {"kind": kind, "record": self._move(wanted)}
        if kind == "decision":
            return {"kind": kind, "record": await self._decision(wanted)}
        if kind == "request":
            return {"kind": kind, "record": await self._request(wanted)}
        raise RefusedError(400, f"{kind} is neither decision, move nor request", "kind")

    def _move(self, wanted: str | None) -> Answer:
        moves: list[Answer] = self._loop.state.moves
        for move in reversed(moves):
            if wanted in (None, move["id"]):
                return move
        known = f"; the newest is {moves[-1]['id']}" if moves else "; there was none yet"
        raise RefusedError(404, f"no move {wanted or ''} is kept{known}", "id")

    async def _decision(self, wanted: str | None) -> Answer:
        newest = self._loop.state.decision
        if newest is None:
            raise RefusedError(404, "nothing has been decided yet: the controller has just started", "id")
        if wanted is None or wanted == str(newest.number):
            found: Answer = msgspec.to_builtins(newest)
            return found
        kept = await self._kept.decision(wanted)
        if kept is None:
            raise RefusedError(
                404,
                f"no decision {wanted} is kept; the newest is {newest.number}, and only changes are kept",
                "id",
            )
        return kept

    async def _request(self, wanted: str | None) -> Answer:
        found = self._requests.find(wanted)
        if found is not None:
            plain: Answer = msgspec.to_builtins(as_fields(found))
            return plain
        if wanted is None:
            raise RefusedError(404, "no request has ended since this controller began", "id")
        kept = await self._kept.request(wanted)
        if kept is None:
            older = "and older ones are in no record that was searched"
            if self._settings.record_dir is None:
                older = "and older ones are in no record: the service runs without --record"
            raise RefusedError(
                404,
                f"no request {wanted} is known: it is reported within a second of its end, the newest "
                f"{MOST:,} are kept while the controller lives, {older}",
                "id",
            )
        return kept
