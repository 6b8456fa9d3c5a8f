"""What workers say of themselves can be listed."""

from __future__ import annotations

from datetime import timedelta

from support import Stage, until
from temporalio import workflow
from temporalio.api.enums.v1 import WorkerStatus
from temporalio.api.worker.v1 import WorkerListInfo
from temporalio.api.workflowservice.v1 import DescribeWorkerRequest, ListWorkersRequest
from temporalio.client import Client
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.worker import Worker


@workflow.defn
class Idle:
    @workflow.run
    async def run(self) -> None:
        pass


async def workers_of(stage: Stage) -> list[WorkerListInfo]:
    request = ListWorkersRequest(
        namespace=stage.client.namespace,
        query=f"TaskQueue='{stage.name}' AND SdkName STARTS_WITH 'temporal'",
    )
    return list((await stage.client.workflow_service.list_workers(request)).workers)


async def test_a_worker_is_listed_and_says_goodbye(stage: Stage) -> None:
    runtime = Runtime(
        telemetry=TelemetryConfig(), worker_heartbeat_interval=timedelta(seconds=1)
    )
    address = stage.client.service_client.config.target_host
    client = await Client.connect(address, runtime=runtime)
    async with Worker(client, task_queue=stage.name, workflows=[Idle]):

        async def is_listed() -> bool:
            return [worker.status for worker in await workers_of(stage)] == [
                WorkerStatus.WORKER_STATUS_RUNNING
            ]

        await until(is_listed)
        (worker,) = await workers_of(stage)
        described = await stage.client.workflow_service.describe_worker(
            DescribeWorkerRequest(
                namespace=stage.client.namespace,
                worker_instance_key=worker.worker_instance_key,
            )
        )
        heartbeat = described.worker_info.worker_heartbeat
        assert heartbeat.worker_identity == worker.worker_identity
        assert heartbeat.host_info.process_id == worker.process_id != ""
        assert heartbeat.workflow_task_slots_info.slot_supplier_kind == "Fixed"

    # It says so when it begins to go, and is forgotten when it has gone.
    async def is_gone() -> bool:
        return all(
            worker.status == WorkerStatus.WORKER_STATUS_SHUTTING_DOWN
            for worker in await workers_of(stage)
        )

    await until(is_gone)
