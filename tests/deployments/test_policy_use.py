"""Which policy is obeyed: the active revision, or the default under a hold."""

from __future__ import annotations

import hashlib

from autoscaling.decisions import Hold, HoldBy, Memory, Mode
from autoscaling.overrides import Override
from autoscaling.profile_match import Served
from autoscaling.types import Role
from deployments.control_state import ControlState
from deployments.default_policy import world
from deployments.policy_book import PolicyBook
from deployments.policy_source import Seen
from deployments.policy_use import acting_document, acting_policy, default_policy, shadow_policy
from tests.autoscaling.profiles import profile
from tests.deployments.control_world import WALL, controller_settings, sizes
from tests.policies import policy

SETTINGS = controller_settings(None)
DEFAULT = default_policy(SETTINGS)


def state(*texts: str) -> ControlState:
    """The state after these texts."""
    found = ControlState(PolicyBook(world(SETTINGS)))
    for text in texts:
        found.book.take(Seen(text, hashlib.sha256(text.encode()).hexdigest(), None), None, WALL)
    return found


def override(until: float) -> Override:
    return Override("o-1", Role.PLAIN, 3, None, None, WALL, until, "launch", "ann")


def test_the_active_revision() -> None:
    """With its number, its hash and no hold."""
    found = acting_policy(state(policy(3, 1)), DEFAULT, WALL)
    assert (1, Mode.ENFORCE, sizes(3, 1), None) == (found.revision, found.mode, found.bootstrap, found.hold)


def test_without_a_revision_the_default_is_held() -> None:
    """Revision 0, the sizes of the settings, and a hold that says why."""
    found = acting_policy(state("spec: [\n"), DEFAULT, WALL)
    assert (0, sizes(2, 2)) == (found.revision, found.bootstrap)
    assert Hold(HoldBy.NO_POLICY, "no valid revision of the policy has been enforced", WALL) == found.hold


def test_with_a_shadow_alone_its_sizes_are_held() -> None:
    """A revision that is only to be evaluated moves nothing, and is evaluated without the hold."""
    found = state(policy(3, 1, mode="shadow"))
    acting, shadow = acting_policy(found, DEFAULT, WALL), shadow_policy(found, WALL)
    assert (1, sizes(3, 1)) == (acting.revision, acting.bootstrap)
    assert acting.hold is not None
    assert HoldBy.NO_POLICY is acting.hold.by
    assert shadow is not None
    assert (1, None) == (shadow.revision, shadow.hold)


def test_a_hold_for_want_of_a_policy_goes_on() -> None:
    """Its begin is that of the decision that was held first; another hold's begin is not taken over."""
    found = state()
    for by, since in ((HoldBy.NO_POLICY, WALL - 60.0), (HoldBy.OPERATOR, WALL)):
        found.memory = Memory(hold=Hold(by, "x", WALL - 60.0))
        hold = acting_policy(found, DEFAULT, WALL).hold
        assert hold is not None
        assert since == hold.since


def test_an_operators_hold_wins() -> None:
    """Over a revision that acts, and over the want of one."""
    for texts in ((policy(2, 2),), ()):
        found = state(*texts)
        found.hold = Hold(HoldBy.OPERATOR, "launch", WALL - 5, WALL + 5, "ann")
        assert found.hold == acting_policy(found, DEFAULT, WALL).hold


def test_what_has_ended_is_dropped() -> None:
    """A hold and an override end with their last instant."""
    found = state(policy(2, 2))
    found.hold = Hold(HoldBy.OPERATOR, "launch", WALL - 5, WALL, "ann")
    found.overrides = (override(WALL), override(WALL + 1))
    assert acting_policy(found, DEFAULT, WALL).hold is None
    assert (None, (override(WALL + 1),)) == (found.hold, found.overrides)


def test_operators_overrides_act_on_every_policy() -> None:
    """On the active revision, on the default, and on the shadow."""
    for texts in ((policy(2, 2),), (), (policy(2, 2, mode="shadow"),)):
        found = state(*texts)
        found.overrides = (override(WALL + 60),)
        rules = acting_policy(found, DEFAULT, WALL).pools[Role.PLAIN]
        assert (3, 3, "override o-1") == (rules.minimum, rules.maximum, rules.bound_by)
    shadow = shadow_policy(found, WALL)
    assert shadow is not None
    assert 3 == shadow.pools[Role.PLAIN].minimum


def test_no_shadow() -> None:
    """None while no revision is only evaluated."""
    assert shadow_policy(state(policy(2, 2)), WALL) is None


def test_the_document_behind_it() -> None:
    """The active one before the shadow, the shadow before the default."""
    names = [
        acting_document(state(*texts), DEFAULT).metadata.name
        for texts in (
            (),
            (policy(2, 2, name="shade", mode="shadow"),),
            (policy(2, 2, name="acts"), policy(2, 2, name="shade", mode="shadow")),
        )
    ]
    assert ["default", "shade", "acts"] == names


def test_a_profile_of_the_served_model_limits_acting_and_shadow() -> None:
    """By each revision's own objectives; a profile of another model only lowers the soft limit."""
    found = state(
        policy(2, 2, objectives={"interactive": {"tpotSeconds": 0.0501}}),
        policy(2, 2, mode="shadow", objectives={"interactive": {"tpotSeconds": 0.0202}}),
    )
    found.profile, found.served = profile(), Served("f")
    acting, shadow = acting_policy(found, DEFAULT, WALL), shadow_policy(found, WALL)
    assert shadow is not None
    assert (28, 8) == tuple(one.pools[Role.SPECULATIVE].measured_limit for one in (acting, shadow))
    assert acting.pools[Role.PLAIN].measured_limit is None
    found.served = Served("other")
    rules = acting_policy(found, DEFAULT, WALL).pools[Role.SPECULATIVE]
    assert (None, 28) == (rules.measured_limit, rules.soft_limit)
