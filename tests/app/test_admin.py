"""The operator's routes: what reaches the controller, what is refused before, and what is said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from app.admin import Admin

HOST = "127.0.0.1:8000"
JSON = {"content-type": "application/json"}
HOLD = {"by": "operator", "reason": "r", "since": "2026-01-01T00:00:00Z", "expires": None, "who": "ann"}
OVERRIDE = {"pool": "plain", "replicas": 3, "for_s": 60, "reason": "r", "who": "ann"}


@dataclass
class Command:
    """A controller's `command` that gives one answer and keeps what it was asked."""

    answer: dict[str, Any]
    raises: Exception | None = None
    silent: bool = False
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def remote(self, name: str, arguments: dict[str, Any]) -> Awaitable[dict[str, Any]]:
        self.asked.append((name, arguments))
        return self._answered()

    async def _answered(self) -> dict[str, Any]:
        if self.raises is not None:
            raise self.raises
        if self.silent:
            await asyncio.get_running_loop().create_future()
        return self.answer


@dataclass
class Controller:
    """The handle: what it says is JSON-plain, as over Ray."""

    command: Command


async def ask(
    command: Command,
    method: str,
    path: str,
    body: object = None,
    *,
    headers: dict[str, str] | None = None,
    writable: bool = True,
    limit_s: float = 3.0,
    raw: bytes | None = None,
) -> httpx.Response:
    app = Starlette(routes=list(Admin(Controller(command), writable, limit_s=limit_s).routes()))
    content = raw if raw is not None else None if body is None else json.dumps(body).encode()
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url=f"http://{HOST}", trust_env=False
    ) as client:
        return await client.request(
            method, path, content=content, headers=JSON if headers is None else headers
        )


def fine(body: dict[str, Any]) -> Command:
    return Command({"status": 200, "body": body})


def error(answer: httpx.Response) -> tuple[int, str, str | None]:
    """Status, code and param of an error object that has its four keys."""
    found = answer.json()["error"]
    assert sorted(found) == ["code", "message", "param", "type"]
    return answer.status_code, found["code"], found["param"]


# --- what reaches the controller

ASKED = [
    (
        "POST",
        "/admin/hold",
        {"reason": "r", "who": "ann"},
        ("hold", {"reason": "r", "for_s": None, "who": "ann"}),
    ),
    (
        "POST",
        "/admin/hold",
        {"reason": "r", "for_s": 90, "who": "ann"},
        ("hold", {"reason": "r", "for_s": 90.0, "who": "ann"}),
    ),
    ("POST", "/admin/release", {"who": "ann"}, ("release", {"who": "ann"})),
    (
        "POST",
        "/admin/overrides",
        OVERRIDE,
        (
            "override_set",
            {
                "pool": "plain",
                "replicas": 3,
                "min_replicas": None,
                "max_replicas": None,
                "for_s": 60.0,
                "reason": "r",
                "who": "ann",
            },
        ),
    ),
    ("GET", "/admin/overrides", None, ("override_list", {})),
    ("DELETE", "/admin/overrides/o-1?who=ann", None, ("override_clear", {"id": "o-1", "who": "ann"})),
    ("DELETE", "/admin/overrides/all?who=ann", None, ("override_clear", {"id": "all", "who": "ann"})),
    ("GET", "/admin/policy", None, ("policy", {})),
    ("GET", "/admin/policy/12", None, ("policy_text", {"revision": 12})),
    ("GET", "/admin/why/decision", None, ("why", {"kind": "decision", "id": None})),
    ("GET", "/admin/why/move?id=m-7", None, ("why", {"kind": "move", "id": "m-7"})),
    ("GET", "/admin/why/request?id=r.1:2", None, ("why", {"kind": "request", "id": "r.1:2"})),
]


@pytest.mark.parametrize(("method", "path", "body", "expected"), ASKED)
async def test_each_route_is_one_command(
    method: str, path: str, body: object, expected: tuple[str, dict[str, Any]]
) -> None:
    """Name and arguments are the controller's, and its body is the answer, unchanged."""
    command = fine({"any": HOLD})

    answer = await ask(command, method, path, body)

    assert [expected] == command.asked
    assert (200, {"any": HOLD}) == (answer.status_code, answer.json())


@pytest.mark.parametrize(
    ("status", "field", "expected"),
    [
        (400, "for_s", (400, "invalid_value", "for_s")),
        (400, None, (400, "invalid_request", None)),
        (404, None, (404, "not_found", None)),
        (404, "id", (404, "not_found", "id")),
        (409, None, (409, "conflict", None)),
        (503, None, (503, "not_ready", None)),
    ],
)
async def test_a_refusal_of_the_controller_is_an_error_object(
    status: int, field: str | None, expected: tuple[int, str, str | None]
) -> None:
    """Its words are kept, its status has a word of the catalogue."""
    command = Command({"status": status, "error": "words of the controller", "field": field})

    answer = await ask(command, "POST", "/admin/release", {"who": "ann"})

    assert expected == error(answer)
    assert "words of the controller" in answer.json()["error"]["message"]


@pytest.mark.parametrize("silent", [True, False])
@pytest.mark.parametrize(("method", "path"), [("GET", "/admin/policy"), ("POST", "/admin/release")])
async def test_a_controller_that_is_gone(method: str, path: str, silent: bool) -> None:
    """Silent or dead, the answer is 503 with Retry-After; a change may have happened, and that is said."""
    command = Command({}, silent=silent, raises=None if silent else RuntimeError("actor died"))

    body = {"who": "ann"} if method == "POST" else None
    answer = await ask(command, method, path, body, limit_s=0.0)

    assert (503, "not_ready", None) == error(answer)
    assert "5" == answer.headers["retry-after"]
    assert (method == "POST") == ("Whether the change was made is unknown" in answer.text)


# --- what is refused before


@pytest.mark.parametrize(
    ("path", "body", "field", "words"),
    [
        ("/admin/hold", {"reason": "r", "who": "a", "until": "x"}, "until", "no field 'until'"),
        ("/admin/hold", {"who": "a"}, "reason", "reason: Field required"),
        ("/admin/hold", {"reason": "", "who": "a"}, "reason", "at least 1 character"),
        ("/admin/hold", {"reason": "  ", "who": "a"}, "reason", "reason: must not be blank."),
        ("/admin/hold", {"reason": "a\x1b[2J", "who": "a"}, "reason", "the control character U+001B."),
        ("/admin/hold", {"reason": "a\nb", "who": "a"}, "reason", "it holds a line break."),
        ("/admin/hold", {"reason": "r", "who": "\u202enna"}, "who", "the control character U+202E."),
        ("/admin/release", {"who": " "}, "who", "who: must not be blank."),
        ("/admin/overrides", OVERRIDE | {"reason": "a\x9b"}, "reason", "the control character U+009B."),
        ("/admin/hold", {"reason": "r"}, "who", "who: Field required"),
        ("/admin/hold", {"reason": "r", "who": "a", "for_s": 0}, "for_s", "greater than 0"),
        ("/admin/hold", {"reason": "r", "who": "a", "for_s": 1e9}, "for_s", "31622400"),
        ("/admin/hold", {"reason": "r", "who": "a", "for_s": "1h"}, "for_s", "valid number"),
        ("/admin/hold", {"reason": "r", "who": "a", "for_s": True}, "for_s", "valid number"),
        ("/admin/hold", {"reason": 5, "who": "a"}, "reason", "valid string"),
        ("/admin/overrides", OVERRIDE | {"pool": "fast"}, "pool", "'speculative' or 'plain'"),
        ("/admin/overrides", OVERRIDE | {"replicas": -1}, "replicas", "greater than or equal to 0"),
        ("/admin/overrides", OVERRIDE | {"replicas": 1.5}, "replicas", "integer"),
        ("/admin/overrides", OVERRIDE | {"replicas": None, "max_replicas": 0}, "max_replicas", "to 1"),
        (
            "/admin/overrides",
            {k: v for k, v in OVERRIDE.items() if k != "for_s"},
            "for_s",
            "for_s: Field required",
        ),
    ],
)
async def test_a_body_that_does_not_fit_is_named(
    path: str, body: dict[str, Any], field: str, words: str
) -> None:
    """The field is named, the reason said, and the controller is not asked."""
    command = fine({})

    answer = await ask(command, "POST", path, body)

    assert (400, "invalid_value", field) == error(answer)
    assert words in answer.json()["error"]["message"]
    assert [] == command.asked


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"replicas": None}, "give either replicas, or"),
        ({"min_replicas": 1}, "give either replicas, or"),
        ({"replicas": None, "min_replicas": 5, "max_replicas": 2}, "min_replicas 5 is above max_replicas 2"),
    ],
)
async def test_an_override_is_a_size_or_bounds(change: dict[str, Any], words: str) -> None:
    """Case C9: nothing, both, and a minimum above the maximum are refused, and the fields are named."""
    command = fine({})

    answer = await ask(command, "POST", "/admin/overrides", OVERRIDE | change)

    assert (400, "invalid_request", None) == error(answer)
    assert words in answer.json()["error"]["message"]
    assert [] == command.asked


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", (400, "invalid_json", None)),
        (b"{", (400, "invalid_json", None)),
        (b"[]", (400, "invalid_body", None)),
        (b'"hold"', (400, "invalid_body", None)),
        (b'{"reason": "\xff", "who": "a"}', (400, "invalid_json", None)),
        (b'{"reason": "r", "who": "a", "for_s": NaN}', (400, "invalid_value", "for_s")),
        (b'{"reason": "' + b"x" * (64 << 10) + b'", "who": "a"}', (413, "request_too_large", None)),
    ],
)
async def test_bodies_that_are_none(raw: bytes, expected: tuple[int, str, str | None]) -> None:
    """JSON, an object, finite numbers, at most 64 KiB."""
    command = fine({})

    assert expected == error(await ask(command, "POST", "/admin/hold", raw=raw))
    assert [] == command.asked


async def test_who_clears_an_override_is_asked_for() -> None:
    """A change has a name to it."""
    for path in ("/admin/overrides/o-1", f"/admin/overrides/o-1?who={'x' * 101}"):
        assert (400, "invalid_value", "who") == error(await ask(fine({}), "DELETE", path))


@pytest.mark.parametrize("who", ["%20", "a%1B%5B2J", "a%0Ab", "%E2%80%AEann"])
async def test_who_clears_is_plain_text(who: str) -> None:
    """A blank name, and one with control characters, is refused before the controller is asked."""
    command = fine({})

    answer = await ask(command, "DELETE", f"/admin/overrides/o-1?who={who}")

    assert (400, "invalid_value", "who") == error(answer)
    assert [] == command.asked


@pytest.mark.parametrize(
    ("method", "path", "param"),
    [
        ("GET", f"/admin/policy/{'9' * 5000}", "revision"),
        ("GET", "/admin/policy/1234567890", "revision"),
        ("GET", "/admin/policy/-1", "revision"),
        ("GET", "/admin/policy/%D9%A1", "revision"),
        ("DELETE", f"/admin/overrides/{'x' * 101}?who=a", "id"),
        ("GET", f"/admin/why/move?id={'x' * 101}", "id"),
    ],
)
async def test_what_no_name_can_be_is_not_found(method: str, path: str, param: str) -> None:
    """A revision has at most nine digits, an id at most 100 characters; the controller is not asked."""
    command = fine({})

    answer = await ask(command, method, path)

    assert (404, "not_found", param) == error(answer)
    assert [] == command.asked
    assert len(answer.text) < 300


async def test_the_largest_names_are_asked_for() -> None:
    """Nine digits and 100 characters reach the controller."""
    command = fine({})

    await ask(command, "GET", "/admin/policy/999999999")
    await ask(command, "DELETE", f"/admin/overrides/{'x' * 100}?who=a")

    assert [
        ("policy_text", {"revision": 999999999}),
        ("override_clear", {"id": "x" * 100, "who": "a"}),
    ] == command.asked


async def test_an_unknown_kind_has_no_why() -> None:
    """Another word is refused with the three that there are."""
    answer = await ask(fine({}), "GET", "/admin/why/weather")

    assert (400, "invalid_value", "kind") == error(answer)
    assert "decision, move, request" in answer.json()["error"]["message"]


async def test_a_callers_id_may_be_long() -> None:
    """As long as the ingress takes one, with the engine's suffix; a longer one is not asked for."""
    command = fine({})

    await ask(command, "GET", f"/admin/why/request?id={'x' * 135}")
    answer = await ask(command, "GET", f"/admin/why/request?id={'x' * 141}")

    assert [("why", {"kind": "request", "id": "x" * 135})] == command.asked
    assert (404, "not_found", "id") == error(answer)


# --- who may change anything

CHANGES = [
    ("POST", "/admin/hold", {"reason": "r", "who": "a"}),
    ("POST", "/admin/release", {"who": "a"}),
    ("POST", "/admin/overrides", OVERRIDE),
    ("DELETE", "/admin/overrides/all?who=a", None),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
async def test_a_service_that_listens_to_others_without_keys_takes_no_change(
    method: str, path: str, body: object
) -> None:
    """Every change is refused, with the reason and what to do; reading still works."""
    command = fine({"overrides": []})

    answer = await ask(command, method, path, body, writable=False)

    assert (403, "admin_not_allowed", None) == error(answer)
    assert "127.0.0.1" in answer.json()["error"]["message"]
    assert "policy file" in answer.json()["error"]["message"]
    assert [] == command.asked
    assert 200 == (await ask(command, "GET", "/admin/overrides", writable=False)).status_code


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://evil.example", HOST),
        ("http://127.0.0.1:3000", HOST),
        ("http://localhost:8000", HOST),
        ("null", HOST),
        ("", HOST),
        ("http://[", HOST),
        # A name whose owner lets it lead to this machine: the page and the host are one origin then.
        ("http://rebound.example:8000", "rebound.example:8000"),
    ],
)
async def test_a_web_page_changes_nothing(
    method: str, path: str, body: object, origin: str, host: str
) -> None:
    """A request that carries another page's Origin is refused, as is one from a name that leads here."""
    command = fine({})

    answer = await ask(command, method, path, body, headers=JSON | {"origin": origin, "host": host})

    assert (403, "admin_not_allowed", None) == error(answer)
    assert [] == command.asked


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1:8000"),
        ("http://LOCALHOST:8000", "localhost:8000"),
        ("http://[::1]:8000", "[::1]:8000"),
    ],
)
async def test_a_page_of_this_very_address_may(origin: str, host: str) -> None:
    """The same address in Origin and Host is our own page."""
    answer = await ask(
        fine({}), "POST", "/admin/release", {"who": "a"}, headers=JSON | {"origin": origin, "host": host}
    )

    assert 200 == answer.status_code


@pytest.mark.parametrize(
    "sent", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
async def test_a_form_changes_nothing(sent: str) -> None:
    """What a page can send without asking first has another content type: only JSON is read."""
    command = fine({})
    headers = {"content-type": sent} if sent else {}

    answer = await ask(command, "POST", "/admin/hold", {"reason": "r", "who": "a"}, headers=headers)

    assert (415, "unsupported_media_type", None) == error(answer)
    assert [] == command.asked
    charset = {"content-type": "Application/JSON; charset=utf-8"}
    assert 200 == (await ask(command, "POST", "/admin/release", {"who": "a"}, headers=charset)).status_code
