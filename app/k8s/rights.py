"""Rules about rights of pods and containers, as the namespace's standard `restricted` has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.k8s.documents import Document, Found, at, entries, mapping, pairs
from app.k8s.pods import clusters, pod_specs
from app.k8s.quantities import whole
from app.k8s.rules import Rule
from autoscaling.policy_problem import Path

ENFORCE = "pod-security.kubernetes.io/enforce"
PROFILES = ("RuntimeDefault", "Localhost")
_HOST = ("hostNetwork", "hostPID", "hostIPC")


def of_rights(document: Document) -> Iterator[Found]:
    """Findings in the pods of any object, and in a namespace."""
    for path, pod, _ in pod_specs(document):
        yield from _pod(document, path, pod)
        for kind in ("initContainers", "containers"):
            for index, container in pairs(pod.get(kind)):
                where = (*path, kind, index, "securityContext")
                yield from _container(document, where, container.get("securityContext"))
                yield from _host_ports(document, (*path, kind, index), container)
    cluster = clusters(document)
    options = None if cluster is None else at(document.data, *cluster, "autoscalerOptions")
    if cluster is not None and isinstance(options, dict) and "securityContext" in options:
        where = (*cluster, "autoscalerOptions", "securityContext")
        yield from _container(document, where, options["securityContext"])
    if document.kind == "Namespace":
        said = at(document.data, "metadata", "labels", ENFORCE)
        if said != "restricted":
            words = f"is {said!r}: without `restricted` a pod with any rights is admitted"
            yield Found(Rule.SECURITY, document, ("metadata", "labels", ENFORCE), words)


def _pod(document: Document, path: Path, pod: Mapping[str, Any]) -> Iterator[Found]:
    context, where = mapping(pod.get("securityContext")), (*path, "securityContext")
    if context.get("runAsNonRoot") is not True:
        yield Found(Rule.SECURITY, document, (*where, "runAsNonRoot"), "must be true")
    if whole(context.get("runAsUser")) == 0:
        yield Found(Rule.SECURITY, document, (*where, "runAsUser"), "must not be 0, which is root")
    if at(context, "seccompProfile", "type") not in PROFILES:
        yield Found(Rule.SECURITY, document, (*where, "seccompProfile", "type"), "must be RuntimeDefault")
    for name in _HOST:
        if pod.get(name):
            words = "must not be true: the pod would share it with the node; take it out"
            yield Found(Rule.SECURITY, document, (*path, name), words)
    for index, volume in pairs(pod.get("volumes")):
        if "hostPath" in volume:
            words = "is a folder of the node, which `restricted` refuses: take a volume claim or an emptyDir"
            yield Found(Rule.SECURITY, document, (*path, "volumes", index, "hostPath"), words)


def _container(document: Document, where: Path, said: Any) -> Iterator[Found]:
    """What a container says itself; it overrules its pod."""
    context = mapping(said)
    if context.get("allowPrivilegeEscalation") is not False:
        yield Found(Rule.SECURITY, document, (*where, "allowPrivilegeEscalation"), "must be false")
    if context.get("privileged"):
        yield Found(Rule.SECURITY, document, (*where, "privileged"), "must not be true")
    if "ALL" not in entries(at(context, "capabilities", "drop")):
        yield Found(Rule.SECURITY, document, (*where, "capabilities", "drop"), "must hold ALL")
    added = [name for name in entries(at(context, "capabilities", "add")) if name != "NET_BIND_SERVICE"]
    if added:
        words = f"adds {', '.join(map(str, added))}: take it out"
        yield Found(Rule.SECURITY, document, (*where, "capabilities", "add"), words)
    if context.get("runAsNonRoot") is False:
        words = "overrules the pod: take it out, or true"
        yield Found(Rule.SECURITY, document, (*where, "runAsNonRoot"), words)
    if whole(context.get("runAsUser")) == 0:
        yield Found(Rule.SECURITY, document, (*where, "runAsUser"), "must not be 0, which is root")
    profile = at(context, "seccompProfile", "type")
    if profile is not None and profile not in PROFILES:
        words = f"is {profile!r}, and overrules the pod: must be RuntimeDefault"
        yield Found(Rule.SECURITY, document, (*where, "seccompProfile", "type"), words)
    if context.get("procMount") not in (None, "Default"):
        yield Found(Rule.SECURITY, document, (*where, "procMount"), "must be Default")


def _host_ports(document: Document, path: Path, container: Mapping[str, Any]) -> Iterator[Found]:
    for index, port in pairs(container.get("ports")):
        if whole(port.get("hostPort")):
            words = "is a port of the node, which `restricted` refuses: take it out"
            yield Found(Rule.SECURITY, document, (*path, "ports", index, "hostPort"), words)
