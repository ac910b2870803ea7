"""Request bodies as an ingress has them: the decoded top level, everything below still raw."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from app.workload.classify import Workload, classify
from app.workload.features import Features, read_features

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])

# 21 sentences without a question, a verb of asking or code: material to copy from.
DOCUMENT = " ".join(f"In year {n} the mill on the river ground {n} tons of rye." for n in range(1900, 1921))


def fields(body: Any) -> dict[str, msgspec.Raw]:
    return _fields.decode(json.dumps(body, ensure_ascii=False))


def features(*, path: str = CHAT, **body: Any) -> Features:
    return read_features(path, fields(body))


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def system(text: Any) -> dict[str, Any]:
    return {"role": "system", "content": text}


def assistant(text: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def chat(*messages: dict[str, Any] | str, **more: Any) -> Features:
    listed = [user(one) if isinstance(one, str) else one for one in messages]
    return features(messages=listed, **more)


def classed(*messages: dict[str, Any] | str, **more: Any) -> Workload:
    return classify(chat(*messages, **more))
