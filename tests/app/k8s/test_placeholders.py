"""What is to be filled in is said with the file to edit, and is no finding."""

from __future__ import annotations

from pathlib import Path

from tests.app.k8s.manifests import Copy, needs_kubectl
from tests.app.k8s.mistakes import PROD, add_component

COPIED = "sha256:" + "0" * 64


def noted(copy: Copy, overlay: str = "prod") -> list[str]:
    """The notes about placeholders, with files relative to the copy."""
    report = copy.report(overlay)
    assert () == report.findings
    return [note.replace(f"{copy.root}/", "") for note in report.notes if "is a placeholder" in note]


@needs_kubectl
def test_every_placeholder_of_prod_names_its_file(tmp_path: Path) -> None:
    """The image, Redis, and the three lines and files of the model; each once."""
    own = "put in yours before you apply this"
    zeros = "a row of zeros is a placeholder: put in what it stands for before you apply this"

    assert {
        f"{PROD}/kustomization.yaml:21: images[0].digest: registry.example/twinpool@{COPIED} is a "
        "placeholder: put in the name and the digest of your image before you apply this",
        f"{PROD}/redis.yaml:8: spec.externalName: redis.example.internal is a placeholder: {own}",
        f"{PROD}/settings/model.env:1: MODEL_REPOSITORY: organisation/name is a placeholder: {own}",
        f"{PROD}/settings/model.env:2: MODEL_REVISION: {zeros}",
        f"{PROD}/settings/SHA256SUMS: data.SHA256SUMS: {zeros}",
    } == set(noted(Copy(tmp_path)))


@needs_kubectl
def test_a_filled_in_value_is_not_noted(tmp_path: Path) -> None:
    """An own digest in the registry that is still a placeholder, and an own Redis."""
    copy = Copy(tmp_path)
    copy.edit(f"{PROD}/redis.yaml", "redis.example.internal", "redis.llm.internal")
    copy.edit(f"{PROD}/kustomization.yaml", COPIED, "sha256:" + "1" * 64)

    notes = noted(copy)

    assert not any("redis" in note for note in notes)
    assert any(
        note.startswith(f"{PROD}/kustomization.yaml:21: images[0].digest: registry.example/")
        for note in notes
    )


@needs_kubectl
def test_the_gateway_of_the_component(tmp_path: Path) -> None:
    """Host name and Gateway are to be patched in the overlay, and once they are nothing is noted."""
    copy = Copy(tmp_path)
    add_component("gateway")(copy)
    mine, route = f"by a patch in {PROD}/kustomization.yaml", "components/gateway/http-route.yaml"
    host = (
        f"{route}:15: spec.hostnames[0]: llm.example.com is a placeholder: "
        f"put in yours before you apply this, {mine}"
    )
    parent = (
        f"{route}:12: spec.parentRefs[0].name: gateway/gateway is a placeholder: "
        f"name your Gateway before you apply this, {mine}"
    )

    before = set(noted(copy))
    copy.write(
        f"{PROD}/route.yaml",
        "- {op: test, path: /metadata/name, value: twinpool}\n"
        "- {op: replace, path: /spec/hostnames, value: [llm.internal]}\n"
        "- {op: replace, path: /spec/parentRefs/0/name, value: gateway}\n",
    )
    copy.edit(
        f"{PROD}/kustomization.yaml",
        "images:\n",
        "patches:\n  - path: route.yaml\n    target: {kind: HTTPRoute, name: twinpool}\nimages:\n",
    )
    after = noted(copy)

    assert {host, parent} <= before
    assert not any("http-route" in note or "route.yaml" in note for note in after)


@needs_kubectl
def test_dev_has_none(tmp_path: Path) -> None:
    """It runs as it is."""
    assert [] == noted(Copy(tmp_path), "dev-cpu")
