"""What a Serve config leaves out is judged by what Ray Serve puts there."""

from __future__ import annotations

from pathlib import Path

from ray.serve.schema import HTTPOptionsSchema

from app.k8s.rules import Rule
from app.k8s.serve_rules import DEFAULT_HOST
from tests.app.k8s.manifests import Copy, needs_kubectl
from tests.app.k8s.mistakes import SERVE


def test_the_default_host_is_ray_serves() -> None:
    """Ray's schema says where Serve listens without a word about it."""
    assert HTTPOptionsSchema().host == DEFAULT_HOST


@needs_kubectl
def test_resources_of_a_wrong_type(tmp_path: Path) -> None:
    """A count that is a word ends in findings, and not in a traceback."""
    copy = Copy(tmp_path)
    copy.edit(SERVE, "          num_gpus: 1\n", "          resources: {engine_slot: many}\n")

    assert {Rule.SERVE_SCHEMA, Rule.CEILING} & {finding.rule for finding in copy.findings("prod")}


@needs_kubectl
def test_orders_from_everybody_where_no_host_is_named(tmp_path: Path) -> None:
    """Without a host Serve listens on every address, so the service must not be writable."""
    copy = Copy(tmp_path)
    copy.edit(SERVE, "  host: 0.0.0.0\n", "")
    copy.edit(SERVE, '"admin_writable": false', '"admin_writable": true')

    assert Rule.ADMIN_OPEN in [finding.rule for finding in copy.findings("prod")]
