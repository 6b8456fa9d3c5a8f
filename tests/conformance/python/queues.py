"""A stage's task queue as operators see it."""

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeTaskQueueResponse,
    UpdateTaskQueueConfigRequest,
)

from support import Stage, until

WORKFLOW = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
ACTIVITY = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
RateLimitUpdate = UpdateTaskQueueConfigRequest.RateLimitUpdate


async def update(stage: Stage, queue_type: TaskQueueType.ValueType, **changes):
    request = UpdateTaskQueueConfigRequest(
        namespace=stage.client.namespace,
        identity="a program",
        task_queue=stage.name,
        task_queue_type=queue_type,
        **changes,
    )
    return (
        await stage.client.workflow_service.update_task_queue_config(request)
    ).config


async def describe(
    stage: Stage, queue_type: TaskQueueType.ValueType
) -> DescribeTaskQueueResponse:
    request = DescribeTaskQueueRequest(
        namespace=stage.client.namespace,
        task_queue=TaskQueue(name=stage.name),
        task_queue_type=queue_type,
        report_stats=True,
        report_config=True,
    )
    return await stage.client.workflow_service.describe_task_queue(request)


async def until_waiting(
    stage: Stage, queue_type: TaskQueueType.ValueType, count: int
) -> None:
    async def all_wait() -> bool:
        described = await describe(stage, queue_type)
        return described.stats.approximate_backlog_count == count

    await until(all_wait)
