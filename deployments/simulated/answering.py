"""One answer on its way: the engine's outputs as a stream of events or as one body."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from http import HTTPStatus

import msgspec
from starlette.types import Receive, Send

from deployments.simulated.errors import ApiError, engine_dead
from deployments.simulated.frames import Finished, Output
from deployments.simulated.generation import EngineDeadError, Generation
from deployments.simulated.prompts import Work
from deployments.simulated.protocol import ChatBody, CompletionBody
from deployments.simulated.shapes import Json, Shape, speculation, usage, whole_body

DONE = b"data: [DONE]\n\n"


class Answering:
    """The answer to one request; `generation` or `refusal` is set before it is sent."""

    def __init__(
        self, body: ChatBody | CompletionBody, work: Work, shape: Shape, model: str, fingerprint: str
    ) -> None:
        self.generation: Generation | None = None
        self.refusal: ApiError | None = None
        self._body = body
        self._work = work
        self._shape = shape
        self._fingerprint = fingerprint
        self._head: Json = {
            "id": work.response_id,
            "object": shape.chunk_object if body.stream else shape.object,
            "created": int(time.time()),
            "model": model,
        }
        self._tokens = [0] * (work.prompts * work.answers)
        self._record: Finished | None = None  # of the sequence that finished last

    def abort(self) -> None:
        """End what is still being generated."""
        if self.generation is not None:
            self.generation.abort()

    async def send(self, send: Send) -> None:
        """Send the answer; errors become an event in a stream, and a body with a status otherwise."""
        if not self._body.stream:
            try:
                await _respond(send, HTTPStatus.OK, await self._whole())
            except EngineDeadError:
                await _respond(send, engine_dead().status, engine_dead().body)
            return
        await _start(send, HTTPStatus.OK, b"text/event-stream; charset=utf-8")
        try:
            async for chunk in self._chunks():
                await _part(send, _event(chunk))
        except EngineDeadError:
            await _part(send, _event(engine_dead().body))
        except ApiError as error:
            await _part(send, _event(error.body))
        await _part(send, DONE)
        await _part(send, b"", more=False)

    async def _outputs(self) -> AsyncIterator[tuple[int, Output]]:
        if self.refusal is not None:
            raise self.refusal
        assert self.generation is not None
        async for index, output in self.generation.outputs():
            self._tokens[index] += output.tokens
            self._record = output.record or self._record
            yield index, output

    async def _chunks(self) -> AsyncIterator[Json]:
        opened = False
        async for index, output in self._outputs():
            if not opened:
                opened = True
                for opening in range(len(self._tokens)):
                    choice = self._shape.opening(opening)
                    if choice is not None:
                        chunk = self._head | {"choices": [choice]} | self._continuous(0)
                        yield chunk | {"prompt_token_ids": None, "prompt_text": None}
            chunk = self._head | {"choices": [self._shape.chunk(index, output)]}
            chunk |= self._continuous(self._tokens[index])
            if output.finish_reason is not None and not self._body.includes_usage:
                chunk["system_fingerprint"] = self._fingerprint
            yield chunk
        if self._body.includes_usage:
            metrics = self._speculation()
            total = usage(self._work.prompt_tokens, sum(self._tokens))
            last = self._head | {"choices": [], "usage": total, "system_fingerprint": self._fingerprint}
            yield last | ({} if metrics is None else {"metrics": {"speculative_decoding": metrics}})

    async def _whole(self) -> Json:
        texts = [""] * len(self._tokens)
        last: dict[int, Output] = {}
        async for index, output in self._outputs():
            texts[index] += output.text
            last[index] = output
        choices = [self._shape.choice(index, text, last[index]) for index, text in enumerate(texts)]
        return whole_body(
            self._shape,
            self._head,
            choices=choices,
            fingerprint=self._fingerprint,
            total=usage(self._work.prompt_tokens, sum(self._tokens)),
            speculative=self._speculation(),
        )

    def _speculation(self) -> Json | None:
        """Only one sequence can be told apart; a plain engine has a histogram of one bar."""
        if len(self._tokens) != 1 or self._record is None or len(self._record.histogram) == 1:
            return None
        return speculation(self._record)

    def _continuous(self, tokens: int) -> Json:
        if not self._body.continuous_usage:
            return {}
        return {"usage": usage(self._work.prompt_tokens // self._work.prompts, tokens)}


async def until_disconnect(work: Coroutine[None, None, None], receive: Receive) -> None:
    """Run `work` to its end, or drop it when the client has gone; call once the body is read."""
    task = asyncio.create_task(work)
    watch = asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait((task, watch), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
    finally:
        for each in (task, watch):
            each.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _event(data: Json) -> bytes:
    return b"data: " + msgspec.json.encode(data) + b"\n\n"


async def _respond(send: Send, status: int, data: Json) -> None:
    body = msgspec.json.encode(data)
    await _start(send, status, b"application/json", len(body))
    await _part(send, body, more=False)


async def _start(send: Send, status: int, content_type: bytes, length: int | None = None) -> None:
    headers = [(b"content-type", content_type)]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": int(status), "headers": headers})


async def _part(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})
