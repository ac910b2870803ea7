"""What is fixed for all replicas of a pool: its engines, and what the flows are like there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.simulation.acceptance import Acceptance
from app.simulation.fluid.course import Stays
from app.simulation.fluid.crowd import Crowd
from app.simulation.fluid.load import Flow
from app.simulation.fluid.pace import Stepping
from app.simulation.fluid.uneven import hidden_share


class Nature:
    """Shared by all cells of a pool; arrays are by flow."""

    def __init__(
        self,
        stepping: Stepping,
        stays: Stays,
        flows: Sequence[Flow],
        acceptances: Sequence[Acceptance],
        crowd: Crowd,
    ) -> None:
        self.stepping = stepping
        self.crowd = crowd
        self.stays = stays
        # Tokens that those in flight have so far.
        self.ages = np.array([flow.answers.mean_in_flight / 2 for flow in flows])
        self.drafting = np.array([stepping.drafting(one) for one in acceptances])
        self.hidden = np.array([hidden_share(flow.answers) for flow in flows])
