"""A process that answers like the service under `benchmarks.mixed`: status, streams with usage, records.

It obeys its policy and profile files in the simplest way.  Run as a script with --port and --settings.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

STEP_S = {"speculative": 0.002, "plain": 0.004}
PER_STREAM_S = 0.0002
LONGEST = 12  # tokens, so that a test is over soon
FINGERPRINT = "fake-model"
REFUSED = "structured-1"  # its words below
REFUSED_WORDS = "Extract every ticket"


class Fake:
    """One service."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._revisions: list[str] = []
        self._open = dict.fromkeys(STEP_S, 0)
        self._seq = 0
        self._records = Path(settings["record_dir"])
        self._records.mkdir(parents=True)

    async def ready(self, _request: web.Request) -> web.Response:
        return web.json_response({"pools": {"speculative": 1, "plain": 1}})

    async def status(self, _request: web.Request) -> web.Response:
        policy, profile = self._policy(), Path(self._settings["profile"])
        state = "measured" if profile.exists() else "none"
        if profile.exists() and json.loads(profile.read_text())["fingerprint"] != FINGERPRINT:
            state = "stale"
        revision = len(self._revisions)
        return web.json_response(
            {
                "ingress": {"inflight": sum(self._open.values())},
                "profile": {"state": state, "error": None},
                "policy": {
                    "name": policy["metadata"]["name"],
                    "seen_revision": revision,
                    "active_revision": revision,
                    "last_error": None,
                },
                "pools": {role: {"replicas": [self._replica(role)]} for role in STEP_S},
            }
        )

    def _policy(self) -> dict[str, Any]:
        text = Path(self._settings["policy"]).read_text()
        if text not in self._revisions:
            self._revisions.append(text)
        found: dict[str, Any] = yaml.safe_load(text)
        return found

    def _replica(self, role: str) -> dict[str, Any]:
        return {
            "state": "running",
            "model_fingerprint": FINGERPRINT,
            "draft_length": 4 if role == "speculative" else 0,
            "inflight": self._open[role],
            "running": self._open[role],
            "waiting": 0,
        }

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        tier = request.headers["x-twinpool-tier"]
        if body["messages"][-1]["content"].startswith(REFUSED_WORDS):
            return web.json_response({"error": {"code": "invalid_value"}}, status=400)
        spec = self._policy()["spec"]
        role, reason = self._route(tier, body, spec, request.headers.get("x-twinpool-pool"))
        answer = web.StreamResponse(
            headers={"x-twinpool-pool": role, "x-twinpool-route-reason": reason, "x-fake": "1"}
        )
        self._open[role] += 1
        try:
            await answer.prepare(request)
            await self._stream(answer, role, min(body["max_tokens"], LONGEST))
        finally:
            self._open[role] -= 1
        self._write(request.headers["x-request-id"], tier, role, reason)
        return answer

    def _route(self, tier: str, body: Any, spec: Any, pin: str | None) -> tuple[str, str]:
        if pin is not None:
            return pin, "pinned_by_caller"
        if tier == "interactive":
            return "speculative", "tier_interactive"
        if tier == "batch" and spec["backfill"]["enabled"] and self._open["speculative"] < 4:
            return "speculative", "backfill"
        if tier == "standard" and spec["workload"]["classify"] and "```" in body["messages"][-1]["content"]:
            return "speculative", "draftable"
        return "plain", f"tier_{tier}"

    async def _stream(self, answer: web.StreamResponse, role: str, tokens: int) -> None:
        per_step = 2 if role == "speculative" else 1
        steps = -(-tokens // per_step)
        for _ in range(steps):
            await answer.write(b'data: {"choices": []}\n\n')
            await asyncio.sleep(STEP_S[role] + PER_STREAM_S * self._open[role])
        last: dict[str, Any] = {"choices": [], "usage": {"completion_tokens": tokens}}
        if role == "speculative":
            drafts = {"num_spec_steps": steps - 1, "num_draft_tokens": 3 * (steps - 1)}
            last["metrics"] = {"speculative_decoding": drafts | {"num_accepted_draft_tokens": tokens - steps}}
        await answer.write(b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(last).encode())

    def _write(self, id_: str, tier: str, role: str, reason: str) -> None:
        self._seq += 1
        request = {"id": id_, "tier": tier, "workload": "chat", "pool": role, "reason": reason}
        line = {"schema": 1, "kind": "request", "seq": self._seq, "epoch": 1}
        line |= {"request": request | {"verdict": "met"}}
        with (self._records / "requests.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--settings", type=Path)
    asked = parser.parse_args()
    fake = Fake(yaml.safe_load(asked.settings.read_text()))
    app = web.Application()
    app.router.add_get("/ready", fake.ready)
    app.router.add_get("/admin/status", fake.status)
    app.router.add_post("/v1/chat/completions", fake.chat)
    web.run_app(app, host="127.0.0.1", port=asked.port, print=None, handler_cancellation=True)


if __name__ == "__main__":
    main()
