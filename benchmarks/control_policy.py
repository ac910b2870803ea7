"""The policy of the fleet that `benchmarks.control` measures with."""

from __future__ import annotations

from benchmarks.control_fleet import FLEET


def policy_text(replicas: int = FLEET) -> str:
    """Short windows for many moves; schedules, zones and an override for the whole of `in_force`."""
    tenth = replicas // 10
    return f"""\
apiVersion: twinpool.dev/v1alpha1
kind: CapacityPolicy
metadata: {{name: bench-control}}
spec:
  budget: {{min: {replicas}, max: {replicas}}}
  bootstrap: {{speculative: {5 * tenth}, plain: {5 * tenth}}}
  objectives:
    interactive: {{ttftSeconds: 2.0, tpotSeconds: 0.1}}
    standard: {{ttftSeconds: 15.0, tpotSeconds: 0.2}}
    batch: {{ttftSeconds: 300.0}}
  pools:
    speculative: {{minReplicas: {tenth}, maxReplicas: {9 * tenth}}}
    plain: {{minReplicas: {tenth}, maxReplicas: {9 * tenth}}}
  behavior:
    cooldownSeconds: 30
    scaleUp:
      stabilizationWindowSeconds: 15
      policies:
        - {{type: Replicas, value: {tenth}, periodSeconds: 60}}
        - {{type: Percent, value: 20, periodSeconds: 60}}
    scaleDown:
      stabilizationWindowSeconds: 60
      policies:
        - {{type: Percent, value: 10, periodSeconds: 60}}
  schedules:
    - name: night
      timeZone: Europe/Berlin
      days: [Mon, Tue, Wed, Thu, Fri]
      start: "22:00"
      end: "06:00"
      pools: {{speculative: {{minReplicas: {tenth // 2}}}, plain: {{minReplicas: {3 * tenth}}}}}
    - name: weekend
      timeZone: America/New_York
      days: [Sat, Sun]
      start: "00:00"
      end: "00:00"
      pools: {{speculative: {{minReplicas: {tenth // 2}}}, plain: {{minReplicas: {2 * tenth}}}}}
  overrides:
    - name: launch
      pool: speculative
      minReplicas: {2 * tenth}
      until: "2100-01-01T00:00:00Z"
      reason: a launch
  guardrails: {{maxStepReplicas: {tenth // 2}}}
"""
