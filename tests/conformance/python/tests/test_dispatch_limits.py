"""How fast a queue hands out its tasks."""

from temporalio.api.enums.v1 import RateLimitSource
from temporalio.api.taskqueue.v1 import RateLimit

from app.activities import greet
from app.activity_workflows import Hello
from app.turns import RunErrands, Turns
from queues import ACTIVITY, RateLimitUpdate, describe, update
from support import Stage, until
from turn_taking import counter_of, errands

# One start in a hundred seconds: however slow the machine, the test is over before the second one is
# due, and it need not look at a clock.
HARDLY_ANY = 0.01


async def test_a_workers_limit_holds_for_the_queue_until_an_operator_sets_another(
    stage: Stage,
):
    counter = counter_of(stage)
    turns = Turns()
    limited = counter.worker(
        activities=[turns.take_turn], max_task_queue_activities_per_second=HARDLY_ANY
    )
    async with stage.worker(RunErrands, Hello, activities=[greet]), limited:
        handle = await stage.start(RunErrands.run, counter.name, errands("errand", 20))

        async def began() -> bool:
            return len(turns.taken) > 0

        await until(began)
        # Time for more, if there were no limit: meanwhile a neighbour's workflows run to their end.
        for number in range(3):
            await stage.execute(Hello.run, "Ada", id=f"{stage.workflow_id}-{number}")
        described = await describe(counter, ACTIVITY)
        limit = described.effective_rate_limit
        assert limit.rate_limit_source == RateLimitSource.RATE_LIMIT_SOURCE_WORKER
        assert round(limit.requests_per_second, 6) == HARDLY_ANY
        assert described.stats.approximate_backlog_count >= 18

        no_limit = RateLimit(requests_per_second=1000)
        await update(
            counter,
            ACTIVITY,
            update_queue_rate_limit=RateLimitUpdate(rate_limit=no_limit),
        )
        await handle.result()
    assert len(turns.taken) == 20
