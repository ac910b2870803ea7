"""Rules about the model: it lies where the pools look for it, and both pools serve one by one name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from app.k8s.documents import Document, Found, at, mapping, pairs
from app.k8s.fleet import MODELS, SERVE, Deployed, Fleet
from app.k8s.mounts import mounts_of
from app.k8s.pods import Group
from app.k8s.rules import Rule
from autoscaling.types import Role
from deployments.config import PoolSettings
from deployments.embedded_model import EMBEDDED, HUB_ID

FOLDER = "MODEL_FOLDER"  # of components/models-pvc
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_TRUE = {"1", "ON", "YES", "TRUE"}


def of_model(fleet: Fleet, documents: list[Document]) -> Iterator[Found]:
    """All findings about the model of one RayService."""
    for role in Role:
        pool, deployed = fleet.pool(role), fleet.deployment(role.value)
        if pool is None or deployed is None or pool.engine.kind == "simulated":
            continue
        for group in fleet.serving(role):
            for rule, words in _place(pool, deployed, group, documents):
                yield _found(fleet, role, deployed, rule, words)
    yield from _one_name(fleet)


def length_note(fleet: Fleet) -> list[str]:
    """Two lengths are allowed, and mostly one of them is a forgotten edit."""
    longest = [pool.engine.max_model_len for role in Role if (pool := fleet.pool(role)) is not None]
    if len(set(longest)) < 2:
        return []
    return [
        f"settings/serve.yaml: max_model_len is {longest[0]} in {Role.SPECULATIVE} and {longest[1]} in "
        f"{Role.PLAIN}: a prompt that fits only one of them may be refused; write one length for both"
    ]


def _found(fleet: Fleet, role: Role, deployed: Deployed, rule: Rule, words: str) -> Found:
    return Found(rule, fleet.document, SERVE, words, (*deployed.env_path, MODELS[role.value][0]))


def _place(
    pool: PoolSettings, deployed: Deployed, group: Group, documents: list[Document]
) -> Iterator[tuple[Rule, str]]:
    model, checked = pool.engine.model, _checked_folder(group, documents)
    if checked is not None and PurePosixPath(model) != checked:
        words = (
            f"engine.model is {model}, and the pods of {group.name} check {checked} ({FOLDER} in "
            f"settings/model.env) before they start: write one of the two as the other"
        )
        yield Rule.MODEL_FOLDER, words
        model = ""  # one finding for one mistake
    offline = next((name for name in OFFLINE if _is_true(_variable(deployed, group, name))), None)
    for key, name in (
        ("model", model),
        ("speculative_config.model", str((pool.engine.speculative_config or {}).get("model", ""))),
    ):
        if offline is not None and name != EMBEDDED and HUB_ID.fullmatch(name):
            words = (
                f"engine.{key} is {name}, an id of the hub, and {offline} in the pods of {group.name} "
                "forbids to fetch it: name the folder where the model lies, such as /models/model"
            )
            yield Rule.MODEL_FOLDER, words


def _variable(deployed: Deployed, group: Group, name: str) -> str:
    own = deployed.env.get(name)
    return str(group.env(name)[0] or "") if own is None else str(own)


def _is_true(text: str) -> bool:
    return text.strip().upper() in _TRUE


def _checked_folder(group: Group, documents: list[Document]) -> PurePosixPath | None:
    """The folder that an init container of components/models-pvc checks; None without one."""
    for _, container in pairs(group.pod.get("initContainers")):
        for _, entry in pairs(container.get("env")):
            wanted = mapping(at(entry, "valueFrom", "configMapKeyRef"))
            if entry.get("name") != FOLDER or not wanted:
                continue
            for document in documents:
                if (document.kind, document.name) != ("ConfigMap", wanted.get("name")):
                    continue
                folder = at(document.data, "data", str(wanted.get("key")))
                claims = [mount.folder for mount in mounts_of(group) if mount.claim is not None]
                if isinstance(folder, str) and folder and len(claims) == 1:
                    return claims[0] / folder
    return None


def _one_name(fleet: Fleet) -> Iterator[Found]:
    names = {role: pool.engine.served_name for role in Role if (pool := fleet.pool(role)) is not None}
    deployed = fleet.deployment(Role.PLAIN.value)
    if len(set(names.values())) > 1 and deployed is not None:
        words = (
            f"engine.served_name is {names[Role.PLAIN]}, that of {Role.SPECULATIVE} is "
            f"{names[Role.SPECULATIVE]}: both pools serve one model, so write one name for both"
        )
        yield _found(fleet, Role.PLAIN, deployed, Rule.ONE_MODEL, words)
