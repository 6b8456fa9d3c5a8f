"""Whose turn it is: strict levels, and inside a level each tenant's exact share."""

from temporalio.common import Priority

from queues import ACTIVITY, WORKFLOW, update
from support import Stage
from turn_taking import (
    Plan,
    activity_turns,
    assert_first_come_first_served,
    assert_shares,
    child_turns,
    counter_of,
    errands,
    workflow_turns,
)

# The busiest tenant's work comes first in one burst: in order of arrival the others would starve.
TIERS = [
    *errands("premium", 15, fairness_key="premium-tier", fairness_weight=5.0),
    *errands("basic", 9, fairness_key="basic-tier", fairness_weight=3.0),
    *errands("free", 6, fairness_key="free-tier", fairness_weight=2.0),
]
TIER_SHARES = {"premium": 5, "basic": 3, "free": 2}


async def test_urgent_workflows_go_first_and_three_is_the_default(stage: Stage):
    guests = [
        *errands("batch", 2, priority_key=5),
        *errands("ordinary", 2),
        *errands("three", 2, priority_key=3),
        *errands("urgent", 2, priority_key=1),
    ]
    assert await workflow_turns(stage, guests) == [
        *("urgent 1", "urgent 2"),
        *("ordinary 1", "ordinary 2", "three 1", "three 2"),
        *("batch 1", "batch 2"),
    ]


async def test_workflows_of_three_tiers_share_every_ten_turns_by_weight(stage: Stage):
    taken = await workflow_turns(stage, TIERS)
    assert len(taken) == len(TIERS)
    assert_shares(taken, TIER_SHARES)


async def test_workflows_without_a_key_are_one_tenant_among_others(stage: Stage):
    guests = [
        *errands("unkeyed", 6),
        *errands("acme", 3, fairness_key="acme"),
        *errands("bolt", 3, fairness_key="bolt"),
    ]
    taken = await workflow_turns(stage, guests)
    assert_shares(taken[:9], {"unkeyed": 1, "acme": 1, "bolt": 1})
    assert taken[9:] == ["unkeyed 4", "unkeyed 5", "unkeyed 6"]


async def test_activities_go_by_level_and_share_a_level_by_weight(stage: Stage):
    premium = {"fairness_key": "premium-tier", "fairness_weight": 5.0}
    free = {"fairness_key": "free-tier", "fairness_weight": 2.0}
    plan = [
        *errands("batch", 2, priority_key=5, **premium),
        *TIERS,
        *errands("urgent", 2, priority_key=1, **free),
    ]
    taken = await activity_turns(stage, Plan(plan))
    assert_shares(taken[:2], {"urgent": 2})
    assert_shares(taken[2:-2], TIER_SHARES)
    assert_shares(taken[-2:], {"batch": 2})


async def test_within_a_tenant_the_first_to_come_is_the_first_to_go(stage: Stage):
    assert_first_come_first_served(await workflow_turns(stage, TIERS))
    assert_first_come_first_served(await activity_turns(stage, Plan(TIERS)))


async def test_activities_take_the_place_in_the_order_of_their_workflows(stage: Stage):
    acme = Priority(fairness_key="acme", fairness_weight=3.0)
    taken = await activity_turns(
        stage,
        Plan(errands("batch", 1), Priority(priority_key=5)),
        Plan(errands("acme", 9), acme),
        # A key of their own, and the weight of their workflow.
        Plan(errands("bolt", 6, fairness_key="bolt"), Priority(fairness_weight=2.0)),
        Plan(errands("urgent", 1), Priority(priority_key=1)),
    )
    assert taken[0] == "urgent 1"
    assert_shares(taken[1:-1], {"acme": 3, "bolt": 2})
    assert taken[-1] == "batch 1"


async def test_children_go_by_level_and_share_a_level_by_weight(stage: Stage):
    premium = {"fairness_key": "premium-tier", "fairness_weight": 5.0}
    free = {"fairness_key": "free-tier", "fairness_weight": 2.0}
    plan = [
        *errands("batch", 2, priority_key=5, **premium),
        *TIERS,
        *errands("urgent", 2, priority_key=1, **free),
    ]
    taken = await child_turns(stage, Plan(plan))
    assert_shares(taken[:2], {"urgent": 2})
    for first in range(2, 32, 10):
        assert_shares(taken[first : first + 10], TIER_SHARES)
    assert_shares(taken[-2:], {"batch": 2})


async def test_children_take_the_place_in_the_order_of_their_parents(stage: Stage):
    taken = await child_turns(
        stage,
        Plan(errands("batch", 1), Priority(priority_key=5)),
        Plan(errands("acme", 9), Priority(fairness_key="acme", fairness_weight=3.0)),
        # A key of their own, and the weight of their parent.
        Plan(errands("bolt", 6, fairness_key="bolt"), Priority(fairness_weight=2.0)),
        Plan(errands("urgent", 1), Priority(priority_key=1)),
    )
    assert taken[0] == "urgent 1"
    for first in range(1, 16, 5):
        assert_shares(taken[first : first + 5], {"acme": 3, "bolt": 2})
    assert taken[-1] == "batch 1"


async def test_an_operators_weights_take_the_place_of_the_programs(stage: Stage):
    weights = {"acme": 3.0, "bolt": 1.0}
    await update(stage, WORKFLOW, set_fairness_weight_overrides=weights)
    guests = [
        *errands("bolt", 3, fairness_key="bolt", fairness_weight=9.0),
        *errands("acme", 9, fairness_key="acme"),
    ]
    assert_shares(await workflow_turns(stage, guests), {"acme": 3, "bolt": 1})


async def test_a_new_weight_acts_on_tasks_that_wait_already(stage: Stage):
    async def reweigh() -> None:
        weights = {"free-tier": 5.0, "basic-tier": 3.0, "premium-tier": 2.0}
        await update(counter_of(stage), ACTIVITY, set_fairness_weight_overrides=weights)

    taken = await activity_turns(stage, Plan(TIERS), meanwhile=reweigh)
    assert_shares(taken[:10], {"free": 5, "basic": 3, "premium": 2})
