"""Checks, when the dust has settled, that nothing acknowledged was lost or done twice."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from pathlib import Path

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory

from load import Acknowledged, Load
from workload import STEPS, Journey, Memories, companion_id, postcard

FINISH_SECONDS_MAX = 60.0


class Audit:
    """Collects the complaints of each claim; a claim without complaints holds."""

    def __init__(self, client: Client, execution_log: Path) -> None:
        self.client = client
        self.execution_log = execution_log
        self.progress: list[str] = []
        self.completes: list[str] = []
        self.signals: list[str] = []
        self.updates: list[str] = []
        self.rejected: list[str] = []
        self.children: list[str] = []
        self.dense: list[str] = []
        self.completed_once: list[str] = []
        self.attempts: list[str] = []
        self.again: list[str] = []
        self.retried: list[str] = []
        self.complaints = {
            "the load makes progress between the kills": self.progress,
            "every acknowledged workflow exists and completes": self.completes,
            "every acknowledged signal is in its workflow's result exactly once": self.signals,
            "every acknowledged update is in its workflow's result exactly once": self.updates,
            "a rejected update leaves no trace": self.rejected,
            "every child reports once to its parent, and its signal arrives once": self.children,
            "every history has dense event ids": self.dense,
            "every activity has exactly one completed event": self.completed_once,
            "no attempt of an activity is handed out twice": self.attempts,
            "no activity is executed again after its completion was recorded": self.again,
            "a start that is retried over a crash is not refused as its own duplicate": self.retried,
        }
        self.activities_executed = 0

    async def run(self, load: Load, kills: int) -> None:
        # Claims about nothing always hold, so ask for something to make them about.
        if len(load.workflows) < kills:
            self.progress.append(f"{len(load.workflows)} workflows were acknowledged")
        self.retried += load.refused_as_duplicate
        gate = asyncio.Semaphore(20)

        async def finish(journey: Acknowledged) -> WorkflowHistory | None:
            async with gate:
                return await self._finish(journey)

        histories = await asyncio.gather(
            *(finish(journey) for journey in load.workflows)
        )

        # Read only now: the last activities run while the workflows are finished.
        executions = self._read_executions()
        for history in histories:
            if history is not None:
                self._check_history(history, executions.get(history.run_id, []))

    def _read_executions(self) -> dict[str, list[dict]]:
        lines = (
            self.execution_log.read_text().splitlines()
            if self.execution_log.exists()
            else []
        )
        self.activities_executed = len(lines)
        by_run: dict[str, list[dict]] = defaultdict(list)
        for line in lines:
            execution = json.loads(line)
            by_run[execution["run_id"]].append(execution)
        for run_id, executions in by_run.items():
            attempts = Counter(
                (each["activity_id"], each["attempt"]) for each in executions
            )
            for (activity_id, attempt), times in attempts.items():
                if times > 1:
                    self.attempts.append(
                        f"run {run_id} activity {activity_id} attempt {attempt}: {times} times"
                    )
        return by_run

    async def _finish(self, journey: Acknowledged) -> WorkflowHistory | None:
        """Closes a workflow, checks its letters and returns its history."""
        handle = self.client.get_workflow_handle_for(
            Journey.run, journey.workflow_id, run_id=journey.run_id
        )
        try:
            await handle.signal(Journey.close)
            memories = await asyncio.wait_for(handle.result(), FINISH_SECONDS_MAX)
            history = await handle.fetch_history()
        except Exception as error:
            self.completes.append(f"{journey.workflow_id}: {error!r}")
            return None
        self._check_memories(journey, memories)
        traces = str(history.events)
        self.rejected += [mark for mark in journey.rejected if mark in traces]
        return history

    def _check_memories(self, journey: Acknowledged, memories: Memories) -> None:
        companions = [
            companion_id(journey.workflow_id, number)
            for number in range(journey.companions)
        ]
        if sorted(memories.companions) != companions:
            self.children.append(f"{journey.workflow_id}: {memories.companions}")
        letters = Counter(memories.letters)
        for card in map(postcard, companions):
            if letters.pop(card, 0) != 1:
                self.children.append(f"{card} did not arrive once")
        for letter in {*journey.letters, *letters}:
            if letters[letter] != 1:
                self.signals.append(f"{letter} is there {letters[letter]} times")
        stamps = Counter(memories.stamps)
        for mark in {*journey.stamps, *stamps}:
            if stamps[mark] != 1:
                self.updates.append(f"{mark} is there {stamps[mark]} times")

    def _check_history(self, history: WorkflowHistory, executions: list[dict]) -> None:
        ids = [event.event_id for event in history.events]
        if ids != list(range(1, len(ids) + 1)):
            self.dense.append(f"{history.workflow_id}: {ids}")

        activity_ids: dict[int, str] = {}
        completions: dict[str, list[float]] = {}
        for event in history.events:
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                scheduled = event.activity_task_scheduled_event_attributes
                activity_ids[event.event_id] = scheduled.activity_id
            elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                completed = event.activity_task_completed_event_attributes
                times = completions.setdefault(
                    activity_ids[completed.scheduled_event_id], []
                )
                times.append(event.event_time.ToNanoseconds() / 1e9)

        is_complete = len(activity_ids) == STEPS and all(
            len(completions.get(activity_id, [])) == 1
            for activity_id in activity_ids.values()
        )
        if not is_complete:
            self.completed_once.append(f"{history.workflow_id}: {completions}")
        for execution in executions:
            times = completions.get(execution["activity_id"], [])
            if times and execution["time"] > min(times):
                self.again.append(
                    f"{history.workflow_id} activity {execution['activity_id']}"
                )
