"""Operators pause, unpause and reset activities, and change their options, while they go on."""

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import Priority, RetryPolicy
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    PauseActivityExecutionRequest,
    ResetActivityExecutionRequest,
    UnpauseActivityExecutionRequest,
    UpdateActivityExecutionOptionsRequest,
)
from temporalio.service import RPCError, RPCStatusCode

from app.operated import Crew, Errand, Round
from app.turns import Turns
from operator_desk import OperatorDesk
from support import Stage, event_names, until, within_bound
from turn_taking import ONE_BY_ONE

LONG = 3600.0


async def send(stage: Stage, name: str, queue: str = "", interval: float = LONG):
    handle = await stage.start(Errand.run, name, queue or stage.name, interval)
    return handle, OperatorDesk(stage.client, handle)


async def test_a_paused_activity_waits_while_others_of_its_queue_go(stage: Stage):
    turns = Turns()
    queue = f"{stage.name}-visits"
    async with stage.worker(Round):
        handle = await stage.start(Round.run, ["first", "second"], queue)
        desk = OperatorDesk(stage.client, handle)

        async def both_wait() -> bool:
            return bool(await desk.pending("first") and await desk.pending("second"))

        await until(both_wait)
        await desk.pause(id="first", reason="bad deploy")
        info = await desk.pending("first")
        assert info.paused
        assert info.pause_info.manual.identity == "ada"
        assert info.pause_info.manual.reason == "bad deploy"
        visits = Stage(stage.client, queue)
        async with visits.worker(activities=[turns.take_turn], **ONE_BY_ONE):

            async def second_went() -> bool:
                return turns.taken == ["second"]

            await until(second_went)
            assert (await desk.pending("first")).paused
            await desk.unpause(unpause_all=True)
            await within_bound(handle.result())
    assert turns.taken == ["second", "first"]
    assert "PAUSED" not in " ".join(await event_names(handle))


async def test_a_running_activity_hears_of_the_pause_and_is_not_retried(stage: Stage):
    crew = Crew()
    async with stage.worker(Errand, activities=[crew.beat]):
        handle, desk = await send(stage, "beat", interval=0.05)
        await within_bound(crew.started.wait())
        await desk.pause()
        info = await desk.until_state("PAUSED", attempt=2)
        assert crew.heard == ["paused"]
        assert info.last_failure.application_failure_info.type == "ActivityPause"
        assert not info.HasField("next_attempt_schedule_time")
        crew.may_succeed.set()
        await desk.unpause()
        assert await within_bound(handle.result()) == 2
    assert crew.attempts == [1, 2]


async def test_unpause_can_begin_with_the_first_attempt_and_without_details(
    stage: Stage,
):
    crew = Crew()
    async with stage.worker(Errand, activities=[crew.stumble]):
        handle, desk = await send(stage, "stumble")
        await desk.until_state("SCHEDULED", attempt=2)
        await desk.pause()
        crew.may_succeed.set()
        await desk.unpause(reset_attempts=True, reset_heartbeat=True)
        assert await within_bound(handle.result()) == 1
    assert crew.details == [(), ()]


async def test_pausing_again_with_another_request_id_is_refused(stage: Stage):
    async with stage.worker(Errand):
        _, desk = await send(stage, "stumble")
        await desk.until_state("SCHEDULED")
        await desk.pause(request_id="one")
        await desk.pause(request_id="one")
        with pytest.raises(RPCError) as refusal:
            await desk.pause(request_id="two")
    assert refusal.value.status == RPCStatusCode.FAILED_PRECONDITION


async def test_reset_ends_a_back_off_and_counts_from_one(stage: Stage):
    crew = Crew()
    async with stage.worker(Errand, activities=[crew.stumble]):
        handle, desk = await send(stage, "stumble")
        await desk.until_state("SCHEDULED", attempt=2)
        crew.may_succeed.set()
        await desk.reset(type="stumble")
        assert await within_bound(handle.result()) == 1
    assert crew.attempts == [1, 1]
    assert crew.details == [(), ("attempt 1",)]


async def test_reset_can_leave_an_activity_paused(stage: Stage):
    crew = Crew()
    async with stage.worker(Errand, activities=[crew.stumble]):
        handle, desk = await send(stage, "stumble")
        await desk.until_state("SCHEDULED", attempt=2)
        await desk.pause()
        await desk.reset(match_all=True, keep_paused=True, reset_heartbeat=True)
        info = await desk.pending()
        assert info.paused and info.attempt == 1
        crew.may_succeed.set()
        await desk.reset()
        assert await within_bound(handle.result()) == 1
    assert crew.details == [(), ()]


async def test_a_running_activity_hears_of_the_reset_and_is_retried(stage: Stage):
    crew = Crew()
    async with stage.worker(Errand, activities=[crew.beat]):
        handle, desk = await send(stage, "beat", interval=0.05)
        await within_bound(crew.started.wait())
        await desk.reset()

        async def was_interrupted() -> bool:
            return crew.heard == ["reset"]

        await until(was_interrupted)
        info = await desk.until_state("STARTED", attempt=2)
        assert info.last_failure.application_failure_info.type == "ActivityReset"
        crew.may_succeed.set()
        assert await within_bound(handle.result()) == 2


# Its token says that it is the second attempt, which after the reset it is not. (Temporal 1.32.1
# refuses the result, and the activity waits for its timeout.)
async def test_the_result_of_an_attempt_from_before_a_reset_is_accepted(stage: Stage):
    crew = Crew()
    async with stage.worker(Errand, activities=[crew.toil]):
        handle, desk = await send(stage, "toil", interval=0.05)
        await within_bound(crew.started.wait())
        await desk.reset()
        await desk.until_state("STARTED", attempt=1)
        crew.may_succeed.set()
        assert await within_bound(handle.result()) == 2
    assert crew.attempts == [1, 2]


async def test_new_options_act_on_an_activity_that_backs_off(stage: Stage):
    crew = Crew()
    async with stage.worker(Errand, activities=[crew.stumble]):
        handle, desk = await send(stage, "stumble")
        await desk.until_state("SCHEDULED", attempt=2)
        crew.may_succeed.set()
        options = ActivityOptions(
            heartbeat_timeout=Duration(seconds=7),
            retry_policy=RetryPolicy(initial_interval=Duration(nanos=1_000_000)),
        )
        paths = ["heartbeat_timeout", "retry_policy.initial_interval"]
        answer = await desk.update_options(paths, options)
        assert answer.heartbeat_timeout.seconds == 7
        assert answer.retry_policy.initial_interval.nanos == 1_000_000
        assert answer.start_to_close_timeout.seconds == 3600
        assert await within_bound(handle.result()) == 2


async def test_a_waiting_activity_moves_to_its_new_queue_and_back(stage: Stage):
    crew = Crew()
    crew.may_succeed.set()
    async with stage.worker(Errand):
        handle, desk = await send(stage, "stumble", f"nobody-polls-{stage.name}")
        await desk.until_state("SCHEDULED")
        paths = ["task_queue.name"]
        elsewhere = ActivityOptions(task_queue=TaskQueue(name=f"{stage.name}-2"))
        await desk.update_options(paths, elsewhere)
        info = await desk.pending()
        assert info.activity_options.task_queue.name == f"{stage.name}-2"
        restored = await desk.restore_options()
        assert restored.task_queue.name == f"nobody-polls-{stage.name}"
        await desk.update_options(paths, elsewhere)
        other = Stage(stage.client, f"{stage.name}-2")
        async with other.worker(activities=[crew.stumble]):
            assert await within_bound(handle.result()) == 1


# At once; on Temporal a moment later, and the others may have gone by then.
async def test_a_waiting_activity_moves_to_its_new_priority(stage: Stage):
    turns = Turns()
    queue = f"{stage.name}-visits"
    visits = ["first", "second", "third"]
    async with stage.worker(Round):
        handle = await stage.start(Round.run, visits, queue)
        desk = OperatorDesk(stage.client, handle)

        async def all_wait() -> bool:
            return all([await desk.pending(visit) for visit in visits])

        await until(all_wait)
        urgent = ActivityOptions(priority=Priority(priority_key=1))
        await desk.update_options(["priority.priority_key"], urgent, id="third")
        worker = Stage(stage.client, queue)
        async with worker.worker(activities=[turns.take_turn], **ONE_BY_ONE):
            await within_bound(handle.result())
    assert turns.taken == ["third", "first", "second"]


# The newer names for the same commands, each about one activity.
async def test_an_activity_of_a_workflow_is_an_execution_too(stage: Stage):
    crew = Crew()
    names = {
        "namespace": stage.client.namespace,
        "workflow_id": stage.workflow_id,
        "activity_id": "errand",
    }
    service = stage.client.workflow_service
    async with stage.worker(Errand, activities=[crew.stumble]):
        handle, desk = await send(stage, "stumble")
        await desk.until_state("SCHEDULED", attempt=2)
        await service.pause_activity_execution(PauseActivityExecutionRequest(**names))
        await desk.until_state("PAUSED", attempt=2)
        answer = await service.update_activity_execution_options(
            UpdateActivityExecutionOptionsRequest(
                activity_options=ActivityOptions(
                    heartbeat_timeout=Duration(seconds=7)
                ),
                update_mask=FieldMask(paths=["heartbeat_timeout"]),
                **names,
            )
        )
        assert answer.activity_options.heartbeat_timeout.seconds == 7
        await service.reset_activity_execution(
            ResetActivityExecutionRequest(
                keep_paused=True, restore_original_options=True, **names
            )
        )
        info = await desk.until_state("PAUSED", attempt=1)
        assert info.activity_options.heartbeat_timeout.seconds == 60
        crew.may_succeed.set()
        await service.unpause_activity_execution(
            UnpauseActivityExecutionRequest(**names)
        )
        assert await within_bound(handle.result()) == 1


async def test_commands_that_make_no_sense_are_refused(stage: Stage):
    async with stage.worker(Errand):
        handle, desk = await send(stage, "stumble")
        await desk.until_state("SCHEDULED")

        async def refusal(call) -> tuple[RPCStatusCode, str]:
            with pytest.raises(RPCError) as refused:
                await call
            return refused.value.status, refused.value.message

        code, text = await refusal(desk.pause(id="nobody"))
        assert code == RPCStatusCode.NOT_FOUND
        assert text.startswith("Can't find pending activity with such ID.")
        nothing = ActivityOptions()
        code, text = await refusal(
            desk.update_options(["start_to_close_timeout"], nothing)
        )
        assert code == RPCStatusCode.INVALID_ARGUMENT
        assert "ScheduleToCloseTimeout" in text
        code, text = await refusal(desk.update_options(["task_queue.name"], nothing))
        assert (code, text) == (
            RPCStatusCode.INVALID_ARGUMENT,
            "TaskQueue is not provided",
        )
        await handle.terminate()
        code, text = await refusal(desk.pause())
        assert code == RPCStatusCode.NOT_FOUND
        assert text == "workflow execution already completed"
