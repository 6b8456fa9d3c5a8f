"""Weights and limits of a task queue, as a program sets them."""

from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import RateLimitSource
from temporalio.api.taskqueue.v1 import RateLimit
from temporalio.service import RPCError

from queues import ACTIVITY, WORKFLOW, RateLimitUpdate, describe, update
from support import Stage


@pytest.mark.parametrize("queue_type", [WORKFLOW, ACTIVITY])
async def test_weights_are_set_replaced_and_removed_one_by_one(stage: Stage, queue_type):
    weights = {"premium": 5.0, "basic": 3.0, "free": 2.0}
    config = await update(stage, queue_type, set_fairness_weight_overrides=weights)
    assert dict(config.fairness_weight_overrides) == weights
    changes = {"premium": 1e9, "trial": 0.25}
    await update(
        stage,
        queue_type,
        set_fairness_weight_overrides=changes,
        unset_fairness_weight_overrides=["free", "never set"],
    )
    stored = (await describe(stage, queue_type)).config.fairness_weight_overrides
    assert dict(stored) == {"premium": 1e9, "basic": 3.0, "trial": 0.25}


async def test_a_refused_change_changes_nothing(stage: Stage):
    await update(stage, ACTIVITY, set_fairness_weight_overrides={"gold": 2.0})
    with pytest.raises(RPCError, match='key "iron": must be greater than zero'):
        await update(
            stage,
            ACTIVITY,
            update_queue_rate_limit=RateLimitUpdate(
                rate_limit=RateLimit(requests_per_second=5)
            ),
            set_fairness_weight_overrides={"gold": 9.0, "iron": 0.0},
        )
    config = (await describe(stage, ACTIVITY)).config
    assert dict(config.fairness_weight_overrides) == {"gold": 2.0}
    assert not config.HasField("queue_rate_limit")


async def test_the_limit_in_force_is_the_operators_while_there_is_one(stage: Stage):
    update_limit = RateLimitUpdate(rate_limit=RateLimit(requests_per_second=12.5))
    await update(stage, ACTIVITY, update_queue_rate_limit=update_limit)
    limit = (await describe(stage, ACTIVITY)).effective_rate_limit
    assert limit.requests_per_second == 12.5
    assert limit.rate_limit_source == RateLimitSource.RATE_LIMIT_SOURCE_API

    await update(stage, ACTIVITY, update_queue_rate_limit=RateLimitUpdate())
    limit = (await describe(stage, ACTIVITY)).effective_rate_limit
    assert limit.requests_per_second > 12.5
    assert limit.rate_limit_source == RateLimitSource.RATE_LIMIT_SOURCE_SYSTEM


async def test_the_default_level_is_always_reported(stage: Stage):
    described = await describe(stage, WORKFLOW)
    assert not described.HasField("config")
    assert list(described.stats_by_priority_key) == [3]
    assert described.stats.approximate_backlog_count == 0
    assert described.stats.approximate_backlog_age.ToTimedelta() == timedelta()
