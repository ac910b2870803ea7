"""Ways to run the same fleet on the same trace: twinpool, what it is measured against, and a bound."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from app.simulation.contenders.dynamo_rule import dynamo_like
from app.simulation.contenders.hindsight_course import hindsight
from app.simulation.contenders.hpa_rule import hpa_like
from app.simulation.contenders.one_pool import all_plain, all_speculative, one_pool_k_table
from app.simulation.contenders.one_pool_routed import one_pool_k_table_our_routing
from app.simulation.contenders.scene import Contender, Scene, two_pools
from app.simulation.contenders.static import static_split
from app.simulation.contenders.threshold_rule import threshold

__all__ = ["CONTENDERS", "Contender", "Scene"]

_ALL: Final = (
    Contender(
        "twinpool", "two pools, our routing, our controller under the policy as given", two_pools, fluid=True
    ),
    Contender("all-plain", "plain replicas alone, least loaded", all_plain),
    Contender("all-speculative", "speculative replicas alone at a fixed K, least loaded", all_speculative),
    Contender(
        "one-pool-k-table", "one kind of engine, K by running sequences, least loaded", one_pool_k_table
    ),
    Contender(
        "one-pool-k-table-our-routing",
        "one kind of engine, K by running sequences, our routing, and our controller moving labels at once",
        one_pool_k_table_our_routing,
    ),
    *(
        Contender(
            f"static-{percent}",
            f"two pools, our routing, {percent} % of the replicas speculative for ever",
            partial(static_split, share=percent / 100),
            fluid=True,
        )
        for percent in (25, 50, 75)
    ),
    Contender(
        "threshold", "two pools, at most eight sequences per speculative replica, no profile", threshold
    ),
    Contender("hpa-like", "two pools, our routing, sizes by Kubernetes' HPA rule", hpa_like),
    Contender(
        "dynamo-like", "two pools, our routing, sizes by the load rule of Dynamo's planner", dynamo_like
    ),
    Contender("hindsight", "two pools, our routing, the cheapest sizes by a look into the future", hindsight),
)
CONTENDERS: Final[Mapping[str, Contender]] = MappingProxyType({one.name: one for one in _ALL})
