"""What operators do to activities and workflows, as calls of the service itself: no SDK has them."""

from __future__ import annotations

from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo, WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import (
    DeleteWorkflowExecutionRequest,
    PauseActivityRequest,
    ResetActivityRequest,
    UnpauseActivityRequest,
    UpdateActivityOptionsRequest,
    UpdateWorkflowExecutionOptionsRequest,
)
from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.client import Client, WorkflowHandle

from support import until


class OperatorDesk:
    def __init__(self, client: Client, handle: WorkflowHandle) -> None:
        self.service = client.workflow_service
        self.namespace = client.namespace
        self.handle = handle
        self.execution = WorkflowExecution(workflow_id=handle.id)

    def named(self, **fields) -> dict:
        if not fields.keys() & {"id", "type", "match_all", "unpause_all"}:
            fields["id"] = "errand"
        return {
            "namespace": self.namespace,
            "execution": self.execution,
            "identity": "ada",
            **fields,
        }

    async def pause(self, **fields) -> None:
        await self.service.pause_activity(PauseActivityRequest(**self.named(**fields)))

    async def unpause(self, **fields) -> None:
        request = UnpauseActivityRequest(**self.named(**fields))
        await self.service.unpause_activity(request)

    async def reset(self, **fields) -> None:
        await self.service.reset_activity(ResetActivityRequest(**self.named(**fields)))

    async def update_options(
        self, paths: list[str], options: ActivityOptions, **fields
    ) -> ActivityOptions:
        request = UpdateActivityOptionsRequest(
            activity_options=options,
            update_mask=FieldMask(paths=paths),
            **self.named(**fields),
        )
        return (await self.service.update_activity_options(request)).activity_options

    async def restore_options(self) -> ActivityOptions:
        request = UpdateActivityOptionsRequest(restore_original=True, **self.named())
        return (await self.service.update_activity_options(request)).activity_options

    async def update_workflow(
        self, paths: list[str], options: WorkflowExecutionOptions
    ) -> WorkflowExecutionOptions:
        request = UpdateWorkflowExecutionOptionsRequest(
            namespace=self.namespace,
            workflow_execution=self.execution,
            workflow_execution_options=options,
            update_mask=FieldMask(paths=paths),
            identity="ada",
        )
        response = await self.service.update_workflow_execution_options(request)
        return response.workflow_execution_options

    async def delete(self, run_id: str = "") -> None:
        execution = WorkflowExecution(workflow_id=self.handle.id, run_id=run_id)
        await self.service.delete_workflow_execution(
            DeleteWorkflowExecutionRequest(
                namespace=self.namespace, workflow_execution=execution
            )
        )

    async def pending(self, activity_id: str = "errand") -> PendingActivityInfo | None:
        described = await self.handle.describe()
        for info in described.raw_description.pending_activities:
            if info.activity_id == activity_id:
                return info
        return None

    async def until_state(self, state: str, attempt: int = 1) -> PendingActivityInfo:
        wanted = PendingActivityState.Value(f"PENDING_ACTIVITY_STATE_{state}")

        async def is_there() -> bool:
            info = await self.pending()
            return (
                info is not None and info.state == wanted and info.attempt == attempt
            )

        await until(is_there)
        return await self.pending()
