"""Right manifests in other words than ours: nothing is found in them, and wrong ones of that form are."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.k8s.documents import read
from app.k8s.lint import lint
from app.k8s.selectors import takes
from tests.app.k8s.manifests import Copy, needs_kubectl, plain_schemas

POLICIES, WORKERS = "base/network-policies.yaml", "base/rayservice.yaml"
RANGE = "        - {protocol: TCP, port: 21000, endPort: 21999}  # port_range of both pools\n"
FROM = "        - podSelector:\n            matchLabels:\n              twinpool.dev/service: twinpool\n"
FROM_SERVICE = f"{FROM}              twinpool.dev/group: service\n"


def ports(low: int, high: int) -> str:
    return f"        - {{protocol: TCP, port: {low}, endPort: {high}}}\n"


def words(copy: Copy) -> list[str]:
    return [finding.message for finding in copy.findings("prod")]


def peer(key: str, operator: str, values: str, namespace: str = "") -> str:
    """Who may come in, by an expression, and by the labels of a namespace where there are some."""
    expression = f"{{key: {key}, operator: {operator}, values: [{values}]}}"
    found = f"        - podSelector:\n            matchExpressions:\n              - {expression}\n"
    return found + (f"          namespaceSelector: {namespace}\n" if namespace else "")


GROUP = "twinpool.dev/group"
HOME = "{matchLabels: {kubernetes.io/metadata.name: twinpool}}"
RESTRICTED = "{matchLabels: {pod-security.kubernetes.io/enforce: restricted}}"


@needs_kubectl
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (RANGE, ports(21000, 21499) + ports(21500, 21999)),
        (RANGE, ports(21400, 21999) + ports(20000, 21500)),
        (RANGE, f"{ports(21000, 21499)}    - from:\n{FROM_SERVICE}      ports:\n{ports(21500, 21999)}"),
        (FROM_SERVICE, peer(GROUP, "In", "service, other")),
        (FROM_SERVICE, peer(GROUP, "NotIn", "accelerator", "{}")),
        (FROM_SERVICE, peer(GROUP, "In", "service", HOME)),
        (FROM_SERVICE, peer(GROUP, "In", "service", RESTRICTED)),
        (FROM_SERVICE, f"        - namespaceSelector: {HOME}\n"),
    ],
)
def test_the_replicas_are_open_in_other_words(old: str, new: str, tmp_path: Path) -> None:
    """Ranges in parts, in one rule or in two; labels by expressions; the own namespace by its labels."""
    copy = Copy(tmp_path)
    copy.edit(POLICIES, old, new)

    assert [] == words(copy)


@needs_kubectl
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (RANGE, ports(21000, 21499) + ports(21501, 21999)),
        (FROM_SERVICE, peer(GROUP, "In", "other")),
        (FROM_SERVICE, peer(GROUP, "NotIn", "service")),
        (FROM_SERVICE, peer(GROUP, "In", "service", "{matchLabels: {kubernetes.io/metadata.name: other}}")),
    ],
)
def test_the_replicas_are_closed_in_other_words(old: str, new: str, tmp_path: Path) -> None:
    """One port less, other labels, another namespace: the relay of an ingress would not get through."""
    copy = Copy(tmp_path)
    copy.edit(POLICIES, old, new)

    assert {"nothing opens 21000-21999"} == {found.partition(" (")[0] for found in words(copy)}


@needs_kubectl
def test_a_policy_of_another_namespace_is_nothing_to_us(tmp_path: Path) -> None:
    """It neither closes our pods nor opens them."""
    other = (
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: other, namespace: NAME}\n"
        "spec: {podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: none-of-ours}]}]}\n"
    )
    text = Copy(tmp_path).render("prod")

    def found_with(namespace: str) -> list[str]:
        documents = read(f"{text}---\n{other.replace('NAME', namespace)}", "file")
        return [item.message for item in lint(documents, None, plain_schemas(), "file").findings]

    assert [] == found_with("other")
    assert ["no selected pod has a port 'none-of-ours'"] == found_with("twinpool")


@needs_kubectl
@pytest.mark.parametrize("name", ["amd.com/gpu", "nvidia.com/mig-1g.5gb", "gpu.intel.com/xe"])
def test_accelerators_of_others_have_their_own_quota(name: str, tmp_path: Path) -> None:
    """What the quota counts is what the groups take; another name's quota is none of theirs."""
    copy = Copy(tmp_path)
    for _ in ("requests", "limits"):
        copy.edit(WORKERS, 'nvidia.com/gpu: "1"', f'{name}: "1"')

    (found,) = words(copy)
    assert f"no ResourceQuota states how many there are (requests.{name})" in found
    copy.edit("overlays/prod/quota.yaml", "nvidia.com/gpu", name)
    assert [] == words(copy)


@pytest.mark.parametrize(
    ("operator", "values", "labels", "taken"),
    [
        ("In", ["a"], {"k": "a"}, True),
        ("In", ["a"], {}, False),
        ("NotIn", ["a"], {}, True),
        ("NotIn", ["a"], {"k": "a"}, False),
        ("In", ["a"], {"k": "b"}, False),
        ("NotIn", ["a"], {"k": "b"}, True),
        ("Exists", None, {"k": "b"}, True),
        ("Exists", None, {}, False),
        ("DoesNotExist", None, {}, True),
        ("DoesNotExist", None, {"k": "b"}, False),
        ("Like", ["a"], {"k": "a"}, False),
    ],
)
def test_expressions_of_labels(operator: str, values: object, labels: dict[str, str], taken: bool) -> None:
    """As the API server takes them."""
    assert taken == takes(
        {"matchExpressions": [{"key": "k", "operator": operator, "values": values}]}, labels
    )
