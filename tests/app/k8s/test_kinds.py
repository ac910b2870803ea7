"""Kinds of other groups are no mistakes, and mistyped ones of known groups are."""

from __future__ import annotations

import pytest

from app.k8s.documents import read
from app.k8s.lint import Report, lint
from app.k8s.rules import Rule
from tests.app.k8s.manifests import plain_schemas


def report(version: str, kind: str) -> Report:
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n"
    return lint(read(text, "file"), None, plain_schemas(), "file")


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("external-secrets.io/v1", "ExternalSecret"),
        ("bitnami.com/v1alpha1", "SealedSecret"),
        ("cert-manager.io/v1", "Certificate"),
        ("gateway.networking.k8s.io/v1", "Gateway"),
        ("gateway.networking.k8s.io/v1beta1", "HTTPRoute"),
        ("monitoring.coreos.com/v1", "ServiceMonitor"),
        ("networking.istio.io/v1", "Gateway"),
        ("apps.kruise.io/v1beta1", "StatefulSet"),
        ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
        ("snapshot.storage.k8s.io/v1", "VolumeSnapshot"),
        ("ray.io/v1", "RayCronJob"),
    ],
)
def test_a_kind_of_another_group_is_a_note(version: str, kind: str) -> None:
    """It is named as not checked, with what to do, and is no finding."""
    found = report(version, kind)

    assert set() == {Rule.KIND, Rule.CORE_SCHEMA} & {item.rule for item in found.findings}
    assert [f"{kind} ({version})"] == [
        note.split(": ")[1] for note in found.notes if note.startswith("not checked")
    ]


@pytest.mark.parametrize(
    ("version", "kind", "words"),
    [
        ("apps/v1", "Deploymnt", "has no Deploymnt in apps/v1"),
        ("app/v1", "Deployment", "has no Deployment in app/v1"),
        ("networking.k8s.io/v1", "NetworkPolicyy", "has no NetworkPolicyy"),
        ("ray.io/v1", "RayServce", "RayService is meant?"),
        ("ray.io/v1alpha1", "RayService", "the rules here are those of ray.io/v1"),
        ("monitoring.coreos.com/v1", "PodMonitr", "PodMonitor is meant?"),
        ("rbac.authorisation.k8s.io/v1", "Role", "rbac.authorization.k8s.io is meant?"),
        ("monitoring.coreo.com/v1", "PodMonitor", "monitoring.coreos.com is meant?"),
    ],
)
def test_a_mistyped_kind_or_group_is_found(version: str, kind: str, words: str) -> None:
    """A group that is known has known kinds, and a letter more or less is no group of its own."""
    (found,) = (item for item in report(version, kind).findings if item.rule is Rule.KIND)

    assert words in found.message
