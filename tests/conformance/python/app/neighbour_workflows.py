"""Workflows that write to other workflows: to a child, to a neighbour, to nobody at all."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from app.message_workflows import Inbox


@workflow.defn
class WriteToChild:
    @workflow.run
    async def run(self, letters: list[str]) -> list[str]:
        child = await workflow.start_child_workflow(
            Inbox.run, id=f"{workflow.info().workflow_id}-inbox"
        )
        for letter in letters:
            await child.signal(Inbox.deliver, letter)
        await child.signal(Inbox.close)
        return await child


@workflow.defn
class WriteToNeighbour:
    @workflow.run
    async def run(self, neighbour_id: str, letters: list[str]) -> None:
        neighbour = workflow.get_external_workflow_handle_for(Inbox.run, neighbour_id)
        for letter in letters:
            await neighbour.signal(Inbox.deliver, letter)


@workflow.defn
class CancelNeighbour:
    @workflow.run
    async def run(self, neighbour_id: str) -> None:
        await workflow.get_external_workflow_handle(neighbour_id).cancel()
