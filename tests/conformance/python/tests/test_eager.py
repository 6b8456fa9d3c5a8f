"""Tasks that whoever makes them takes along: eager starts and eager activities."""

import uuid

from google.protobuf.duration_pb2 import Duration
from temporalio.api.command.v1 import (
    Command,
    CompleteWorkflowExecutionCommandAttributes,
    ScheduleActivityTaskCommandAttributes,
)
from temporalio.api.common.v1 import ActivityType, WorkflowType
from temporalio.api.enums.v1 import CommandType
from temporalio.api.taskqueue.v1 import RateLimit, TaskQueue
from temporalio.api.workflowservice.v1 import (
    PollActivityTaskQueueRequest,
    PollActivityTaskQueueResponse,
    PollWorkflowTaskQueueResponse,
    RespondActivityTaskCompletedRequest,
    RespondWorkflowTaskCompletedRequest,
    RespondWorkflowTaskCompletedResponse,
    StartWorkflowExecutionRequest,
    StartWorkflowExecutionResponse,
)

from app.activities import greet
from app.message_workflows import FixedGreeting
from app.activity_workflows import Hello
from queues import ACTIVITY, WORKFLOW, RateLimitUpdate, until_waiting, update
from support import Stage, event_names, events

NOTHING = RateLimitUpdate(rate_limit=RateLimit(requests_per_second=0))


async def start(stage: Stage, **options) -> StartWorkflowExecutionResponse:
    options.setdefault("workflow_id", stage.workflow_id)
    options.setdefault("request_id", str(uuid.uuid4()))
    return await stage.client.workflow_service.start_workflow_execution(
        StartWorkflowExecutionRequest(
            namespace=stage.client.namespace,
            workflow_type=WorkflowType(name="Anything"),
            task_queue=TaskQueue(name=stage.name),
            request_eager_execution=True,
            identity="a program",
            **options,
        )
    )


async def complete(
    stage: Stage, task: PollWorkflowTaskQueueResponse, *commands: Command
) -> RespondWorkflowTaskCompletedResponse:
    return await stage.client.workflow_service.respond_workflow_task_completed(
        RespondWorkflowTaskCompletedRequest(
            namespace=stage.client.namespace,
            task_token=task.task_token,
            identity="a program",
            commands=commands,
        )
    )


def schedule(stage: Stage, activity_id: str) -> Command:
    return Command(
        command_type=CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
        schedule_activity_task_command_attributes=ScheduleActivityTaskCommandAttributes(
            activity_id=activity_id,
            activity_type=ActivityType(name="anything"),
            task_queue=TaskQueue(name=stage.name),
            start_to_close_timeout=Duration(seconds=60),
            request_eager_execution=True,
        ),
    )


FINISH = Command(
    command_type=CommandType.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
    complete_workflow_execution_command_attributes=CompleteWorkflowExecutionCommandAttributes(),
)


async def end_activity(stage: Stage, task: PollActivityTaskQueueResponse) -> None:
    await stage.client.workflow_service.respond_activity_task_completed(
        RespondActivityTaskCompletedRequest(
            namespace=stage.client.namespace, task_token=task.task_token
        )
    )


async def test_an_eager_start_brings_the_first_task_along(stage: Stage):
    started = await start(stage)
    task = started.eager_workflow_task
    assert task.attempt == 1 and task.started_event_id == 3
    assert [event.event_id for event in task.history.events] == [1, 2, 3]
    await complete(stage, task, FINISH)
    handle = stage.client.get_workflow_handle(stage.workflow_id)
    history = await events(handle)
    first = history[0].workflow_execution_started_event_attributes
    assert first.eager_execution_accepted
    assert await event_names(handle) == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "WORKFLOW_EXECUTION_COMPLETED",
    ]


async def test_an_eager_start_that_is_sent_again_gets_the_same_task(stage: Stage):
    request_id = str(uuid.uuid4())
    first = await start(stage, request_id=request_id)
    again = await start(stage, request_id=request_id)
    assert again.run_id == first.run_id
    assert again.eager_workflow_task.task_token == first.eager_workflow_task.task_token
    await complete(stage, again.eager_workflow_task, FINISH)
    over = await start(stage, request_id=request_id)
    assert not over.HasField("eager_workflow_task")


async def test_an_eager_start_waits_its_turn_behind_what_waits(stage: Stage):
    first = await start(stage, request_id="first", workflow_id=f"{stage.name}-first")
    await complete(stage, first.eager_workflow_task)
    # A workflow that nobody works on waits in the queue, and has the better claim.
    await stage.client.start_workflow(
        "Anything", id=f"{stage.name}-before", task_queue=stage.name
    )
    await until_waiting(stage, WORKFLOW, 1)
    late = await start(stage)
    assert not late.HasField("eager_workflow_task")
    await until_waiting(stage, WORKFLOW, 2)
    handle = stage.client.get_workflow_handle(stage.workflow_id)
    first_event = (await events(handle))[0]
    attributes = first_event.workflow_execution_started_event_attributes
    assert not attributes.eager_execution_accepted


async def test_eager_activities_come_with_the_answer_to_their_commands(stage: Stage):
    task = (await start(stage)).eager_workflow_task
    answer = await complete(stage, task, schedule(stage, "a"), schedule(stage, "b"))
    assert [given.activity_id for given in answer.activity_tasks] == ["a", "b"]
    for given in answer.activity_tasks:
        await end_activity(stage, given)
    names = await event_names(stage.client.get_workflow_handle(stage.workflow_id))
    assert names.count("ACTIVITY_TASK_COMPLETED") == 2


async def test_eager_activities_obey_the_limit_of_their_queue(stage: Stage):
    task = (await start(stage)).eager_workflow_task
    await update(stage, ACTIVITY, update_queue_rate_limit=NOTHING)
    answer = await complete(stage, task, schedule(stage, "a"))
    assert not answer.activity_tasks
    await until_waiting(stage, ACTIVITY, 1)
    await update(stage, ACTIVITY, update_queue_rate_limit=RateLimitUpdate())
    given = await stage.client.workflow_service.poll_activity_task_queue(
        PollActivityTaskQueueRequest(
            namespace=stage.client.namespace, task_queue=TaskQueue(name=stage.name)
        )
    )
    assert given.activity_id == "a"
    await end_activity(stage, given)


async def test_a_workflow_that_is_started_eagerly_runs(stage: Stage):
    async with stage.worker(FixedGreeting):
        handle = await stage.start(FixedGreeting.run, "Ada", request_eager_start=True)
        assert await handle.result() == "Hello, Ada!"
    first = (await events(handle))[0].workflow_execution_started_event_attributes
    assert first.eager_execution_accepted


async def test_a_workflow_with_eager_activities_runs(stage: Stage):
    async with stage.worker(Hello, activities=[greet]):
        assert await stage.execute(Hello.run, "Ada") == "Hello, Ada!"
