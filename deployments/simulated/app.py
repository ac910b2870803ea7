"""The OpenAI app of the simulated engine: the surface of vLLM's server over a child process."""

from __future__ import annotations

import time
import uuid
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from autoscaling.types import Capabilities
from deployments.simulated.answering import Answering, until_disconnect
from deployments.simulated.child import Child
from deployments.simulated.errors import ApiError, engine_dead, invalid, plain_http
from deployments.simulated.generation import EngineDeadError
from deployments.simulated.prompts import plan
from deployments.simulated.protocol import ChatBody, CompletionBody, read_body
from deployments.simulated.shapes import ChatShape, CompletionShape, model_list

REFUSED = "The min_p and logit_bias sampling parameters are not yet supported with speculative decoding."


def build_app(child: Child, capabilities: Capabilities) -> Starlette:
    """Make the app over one child process."""
    created = int(time.time())

    async def models(_request: Request) -> Response:
        return JSONResponse(model_list(capabilities.models, created, capabilities.max_model_len))

    async def health(_request: Request) -> Response:
        return Response(
            status_code=HTTPStatus.OK if child.failure is None else HTTPStatus.SERVICE_UNAVAILABLE
        )

    async def http_error(_request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return JSONResponse(plain_http(error.status_code, error.detail).body, error.status_code)

    async def other_error(_request: Request, error: Exception) -> Response:
        failed = ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalServerError", str(error))
        return JSONResponse(failed.body, failed.status)

    return Starlette(
        routes=[
            Route("/v1/chat/completions", Endpoint(child, capabilities, chat=True), methods=["POST"]),
            Route("/v1/completions", Endpoint(child, capabilities, chat=False), methods=["POST"]),
            Route("/v1/models", models),
            Route("/health", health),
        ],
        exception_handlers={HTTPException: http_error, Exception: other_error},
    )


class Endpoint:
    """One of the two generating endpoints, as an ASGI app."""

    def __init__(self, child: Child, capabilities: Capabilities, *, chat: bool) -> None:
        self._child = child
        self._capabilities = capabilities
        self._form: type[ChatBody] | type[CompletionBody] = ChatBody if chat else CompletionBody
        self._shape = ChatShape() if chat else CompletionShape()
        self._fingerprint = f"simulated-{capabilities.engine_version}-{capabilities.fingerprint[:8]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the sequences of a caller who leaves are aborted at once."""
        request = Request(scope, receive)
        try:
            answering = self._prepare(request, await request.body())
        except ClientDisconnect:
            return
        except ApiError as error:
            await JSONResponse(error.body, error.status)(scope, receive, send)
            return
        try:
            await until_disconnect(answering.send(send), receive)
        finally:
            answering.abort()

    def _prepare(self, request: Request, raw: bytes) -> Answering:
        body = read_body(self._form, raw, request.headers.get("content-type", ""))
        base_id = request.headers.get("x-request-id") or body.request_id or uuid.uuid4().hex
        priority = request.headers.get("x-vllm-priority", "")
        if self._child.failure is not None:
            raise engine_dead()
        work = plan(body, base_id, _int_or(priority, body.priority), self._capabilities)
        answering = Answering(body, work, self._shape, self._capabilities.models[0], self._fingerprint)
        try:
            if work.refused:
                raise invalid(REFUSED)
            answering.generation = self._child.submit(work.adds)
        except EngineDeadError as error:
            raise engine_dead() from error
        except ApiError as error:
            # vLLM checks these only once a stream has begun: the refusal comes as an event after a 200.
            if not body.stream:
                raise
            answering.refusal = error
        return answering


def _int_or(text: str, default: int) -> int:
    try:
        return int(text)
    except ValueError:
        return default
