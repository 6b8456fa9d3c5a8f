"""What a scenario sees of a server: calls by name, a worker's few moves, and a record of every answer."""

from __future__ import annotations

import dataclasses
import json
import queue
import time
from collections.abc import Iterator
from typing import Any as Tree

import grpc
import temporalio.api.errordetails.v1  # noqa: F401  so that details of errors can be unpacked
import temporalio.api.operatorservice.v1 as operatorservice
import temporalio.api.workflowservice.v1 as workflowservice
from google.protobuf.message import Message
from payload import complete_workflow, failure, payloads, seconds, start_timer
from temporalio.api.common.v1.grpc_status_pb2 import GrpcStatus
from temporalio.api.enums.v1 import CallbackState, EventType
from temporalio.api.history.v1 import HistoryEvent
from receiver import Heard, Receiver
from tree import RunNames, any_tree, tree_of

NAMESPACE = "differential"
IDENTITY = "worker"
# Long enough for the slowest machine: a scenario that waits this long has found something.
TASK_WAIT_S = 120
POLL_S = 30
CALL_S = 120


class ScriptFailed(Exception):
    """The scenario cannot go on: what it waited for did not come, or a call was refused."""


@dataclasses.dataclass(frozen=True)
class Refusal:
    code: str
    message: str
    details: tuple

    def tree(self, runs: RunNames) -> Tree:
        details = [any_tree(detail, runs) for detail in self.details]
        return {"refused": {"code": self.code, "message": runs.replace_in(self.message), "details": details}}


def refusal_of(error: grpc.RpcError) -> Refusal:
    trailer = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    return Refusal(error.code().name, error.details() or "", tuple(GrpcStatus.FromString(trailer).details))


class Pending:
    """A call under way. Its answer is recorded when the scenario asks for it."""

    def __init__(self, world: World, rpc: str, request: Message, call: grpc.Future) -> None:
        self._world, self._rpc, self._request, self._call = world, rpc, request, call

    def answer(self) -> Message | Refusal:
        try:
            answer = self._call.result()
        except grpc.RpcError as error:
            answer = refusal_of(error)
        self._world.record(self._rpc, self._request, answer)
        return answer


class World:
    """One scenario on one server. Names are the same on both servers, and no other scenario uses them."""

    def __init__(self, scenario: str, channel: grpc.Channel, take: int = 1) -> None:
        # Names of a later take are new, and shown as if they were not.
        self._mark = f"~{take}" if take > 1 else ""
        self.queue = f"{scenario}{self._mark}"
        self.children = f"{self.queue}-children"
        self._channel = channel
        self._clocks = 0
        self._records: list[tuple[str, Message | Refusal | Heard]] = []
        self._receiver: Receiver | None = None
        self._runs = RunNames()

    def id(self, name: str = "workflow") -> str:
        return f"{self.queue}-{name}"

    # ---- calls -----------------------------------------------------------------------------------

    def call(self, rpc: str, **fields) -> Message:
        """Calls a method by name; the scenario ends here when it is refused."""
        answer = self.attempt(rpc, **fields)
        if isinstance(answer, Refusal):
            raise ScriptFailed(f"{rpc} was refused: {answer.code} {answer.message}")
        return answer

    def attempt(self, rpc: str, **fields) -> Message | Refusal:
        """Calls a method that may well be refused."""
        return self.later(rpc, **fields).answer()

    def later(self, rpc: str, timeout_s: float = CALL_S, **fields) -> Pending:
        """Begins a call and goes on."""
        request, method = self._prepare(rpc, fields)
        return Pending(self, rpc, request, method.future(request, timeout=timeout_s))

    def _prepare(self, rpc: str, fields: dict):
        service = workflowservice if hasattr(workflowservice, f"{rpc}Request") else operatorservice
        request_type, answer_type = getattr(service, f"{rpc}Request"), getattr(service, f"{rpc}Response")
        known = request_type.DESCRIPTOR.fields_by_name
        if "namespace" in known:
            fields.setdefault("namespace", NAMESPACE)
        if "identity" in known:
            fields.setdefault("identity", IDENTITY)
        file = request_type.DESCRIPTOR.file.package
        full_name = "OperatorService" if service is operatorservice else "WorkflowService"
        method = self._channel.unary_unary(
            f"/{file}.{full_name}/{rpc}",
            request_serializer=request_type.SerializeToString,
            response_deserializer=answer_type.FromString,
        )
        return request_type(**fields), method

    def record(self, rpc: str, request: Message | None, answer: Message | Refusal) -> None:
        self._records.append((rpc, answer))
        if isinstance(answer, Refusal) or getattr(request, "namespace", NAMESPACE) not in ("", NAMESPACE):
            return
        if request is not None and "run_id" in answer.DESCRIPTOR.fields_by_name:
            named = request if hasattr(request, "workflow_id") else getattr(request, "workflow_execution", None)
            if named is not None:
                self._runs.add(named.workflow_id, answer.run_id)
            elif hasattr(request, "activity_id"):
                self._runs.add_name(request.activity_id, answer.run_id)
        self._runs.add_all(answer)

    # ---- a client's moves ------------------------------------------------------------------------

    def start_fields(self, name: str = "workflow", **fields) -> dict:
        return {
            "workflow_id": self.id(name),
            "workflow_type": {"name": "Type"},
            "task_queue": {"name": self.queue},
            # So that a slow machine does not run into it.
            "workflow_task_timeout": seconds(60),
            "request_id": f"start-{name}",
            "input": payloads("input"),
        } | fields

    def start(self, name: str = "workflow", **fields) -> str:
        return self.call("StartWorkflowExecution", **self.start_fields(name, **fields)).run_id

    def execution(self, name: str = "workflow", run_id: str = "") -> dict:
        return {"workflow_id": self.id(name), "run_id": run_id}

    def signal(self, signal: str, name: str = "workflow", **fields) -> None:
        fields = {"signal_name": signal, "request_id": f"signal-{signal}", "input": payloads(signal)} | fields
        self.call("SignalWorkflowExecution", workflow_execution=self.execution(name), **fields)

    def request_cancel(self, name: str = "workflow", **fields) -> None:
        fields = {"request_id": f"cancel-{name}", "reason": "enough"} | fields
        self.call("RequestCancelWorkflowExecution", workflow_execution=self.execution(name), **fields)

    def terminate(self, name: str = "workflow", **fields) -> None:
        self.call("TerminateWorkflowExecution", workflow_execution=self.execution(name), **fields)

    def describe(self, name: str = "workflow", run_id: str = "") -> Message:
        return self.call("DescribeWorkflowExecution", execution=self.execution(name, run_id))

    def events(self, name: str = "workflow", run_id: str = "") -> list[HistoryEvent]:
        """The events so far; not recorded, since every history is at the end."""
        request, method = self._prepare("GetWorkflowExecutionHistory", {"execution": self.execution(name, run_id)})
        return list(method(request, timeout=CALL_S).history.events)

    def pages(self, rpc: str, **fields) -> Iterator[Message]:
        """Reads to the end, page by page. Whether an empty page is the last one is the server's affair."""
        token = b""
        while True:
            request, method = self._prepare(rpc, fields | {"next_page_token": token})
            page = method(request, timeout=CALL_S)
            token = page.next_page_token
            page.ClearField("next_page_token")
            if page.history.events:
                self.record(rpc, request, page)
                yield page
            if not token:
                return

    def wait_for(self, event_type: str, name: str = "workflow", run_id: str = "", count: int = 1) -> None:
        """Looks at a history until it has so many events of a type."""
        wanted = f"EVENT_TYPE_{event_type}"
        deadline = time.monotonic() + TASK_WAIT_S
        while True:
            events = self.events(name, run_id)
            types = [EventType.Name(event.event_type) for event in events]
            if types.count(wanted) >= count:
                return
            if time.monotonic() > deadline:
                raise ScriptFailed(f"{event_type} did not come; there is {', '.join(types)}")
            time.sleep(0.1)

    def wait_s(self, length_s: float) -> None:
        """Waits for the length of a timer of the server's own, so a server that is late makes this late as well."""
        self._clocks += 1
        clock = f"{self.queue}-clock-{self._clocks}"
        request, start = self._prepare("StartWorkflowExecution", self.start_fields(clock, task_queue={"name": clock}))
        start(request, timeout=CALL_S)
        for commands in [[start_timer(after_s=length_s)], [complete_workflow()]]:
            task = self._poll_unrecorded("PollWorkflowTaskQueue", {"task_queue": {"name": clock}})
            request, respond = self._prepare("RespondWorkflowTaskCompleted", self.completion(task, *commands))
            respond(request, timeout=CALL_S)

    def wait_until_known(self, namespace: str) -> None:
        """Temporal looks for new namespaces every few seconds only."""
        deadline = time.monotonic() + TASK_WAIT_S
        fields = {"namespace": namespace, "task_queue": {"name": self.queue}}
        request, method = self._prepare("DescribeTaskQueue", fields)
        while time.monotonic() < deadline:
            try:
                method(request, timeout=CALL_S)
                return
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.NOT_FOUND:
                    return
            time.sleep(0.2)
        raise ScriptFailed(f"namespace {namespace} did not appear")

    def wait_until_gone(self, name: str = "workflow", run_id: str = "") -> None:
        """Looks at a run until there is none: a deletion may take a moment. Not recorded."""
        deadline = time.monotonic() + TASK_WAIT_S
        request, method = self._prepare("DescribeWorkflowExecution", {"execution": self.execution(name, run_id)})
        while time.monotonic() < deadline:
            try:
                method(request, timeout=CALL_S)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.NOT_FOUND:
                    raise
                return
            time.sleep(0.1)
        raise ScriptFailed(f"{name} was not deleted")

    # ---- somebody outside ------------------------------------------------------------------------

    def receiver(self, statuses: Iterator[int] = iter(())) -> str:  # noqa: B008  an empty one has no state
        """The address of somebody who listens for callbacks. The first call says how they answer."""
        if self._receiver is None:
            self._receiver = Receiver(statuses)
        return self._receiver.address

    def hear(self) -> None:
        """Waits for the next callback."""
        try:
            self._records.append(("callback", self._receiver.next(TASK_WAIT_S)))
        except queue.Empty as error:
            raise ScriptFailed("no callback came") from error

    def wait_for_callback(self, state: str, name: str = "workflow") -> None:
        """Looks at a workflow until its callback is in a state."""
        wanted = CallbackState.Value(f"CALLBACK_STATE_{state}")
        deadline = time.monotonic() + TASK_WAIT_S
        request, method = self._prepare("DescribeWorkflowExecution", {"execution": self.execution(name)})
        while all(callback.state != wanted for callback in method(request, timeout=CALL_S).callbacks):
            if time.monotonic() > deadline:
                raise ScriptFailed(f"the callback did not become {state}")
            time.sleep(0.1)

    # ---- a worker's moves ------------------------------------------------------------------------

    def poll(self, queue: str = "", **fields) -> Message:
        """The next workflow task of the queue. Polls that come back empty are not recorded."""
        fields = {"task_queue": {"name": queue or self.queue}} | fields
        return self._poll("PollWorkflowTaskQueue", fields)

    def poll_activity(self, queue: str = "", **fields) -> Message:
        fields = {"task_queue": {"name": queue or self.queue}} | fields
        return self._poll("PollActivityTaskQueue", fields)

    def poll_tasks(self, count: int) -> list[Message]:
        """So many workflow tasks, by their workflows' ids."""
        queue = {"task_queue": {"name": self.queue}}
        tasks = [self._poll_unrecorded("PollWorkflowTaskQueue", queue) for _ in range(count)]
        tasks.sort(key=lambda task: task.workflow_execution.workflow_id)
        for task in tasks:
            self.record("PollWorkflowTaskQueue", None, task)
        return tasks

    def poll_activities(self, count: int) -> dict[str, Message]:
        """So many activity tasks by their ids; in which order they come is the server's affair."""
        queue = {"task_queue": {"name": self.queue}}
        tasks = [self._poll_unrecorded("PollActivityTaskQueue", queue) for _ in range(count)]
        by_id = {task.activity_id: task for task in sorted(tasks, key=lambda task: task.activity_id)}
        for task in by_id.values():
            self.record("PollActivityTaskQueue", None, task)
        return by_id

    def _poll(self, rpc: str, fields: dict) -> Message:
        task = self._poll_unrecorded(rpc, fields)
        self.record(rpc, None, task)
        return task

    def _poll_unrecorded(self, rpc: str, fields: dict) -> Message:
        deadline = time.monotonic() + TASK_WAIT_S
        while time.monotonic() < deadline:
            request, method = self._prepare(rpc, fields)
            try:
                answer = method(request, timeout=POLL_S)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise
                continue
            if answer.task_token:
                return answer
        raise ScriptFailed(f"{rpc}: no task came")

    def poll_later(self, task_queue: dict) -> Pending:
        """Begins a poll, and goes on when it has surely arrived: tasks may go elsewhere when nobody waits for them."""
        polling = self.later("PollWorkflowTaskQueue", task_queue=task_queue)
        self.wait_s(1)
        return polling

    def completion(self, task: Message, *commands, **fields) -> dict:
        """Commands that leave their task queue open mean this scenario's, or that of its children."""
        for command in commands:
            attributes = getattr(command, command.WhichOneof("attributes") or "", None)
            if hasattr(attributes, "task_queue") and not attributes.HasField("task_queue"):
                is_child = command.HasField("start_child_workflow_execution_command_attributes")
                attributes.task_queue.name = self.children if is_child else self.queue
        return {"task_token": task.task_token, "commands": commands} | fields

    def complete(self, task: Message, *commands, **fields) -> Message:
        return self.call("RespondWorkflowTaskCompleted", **self.completion(task, *commands, **fields))

    def turn(self, *commands, queue: str = "", **fields) -> Message:
        """Takes the next workflow task and answers it with commands."""
        task = self.poll(queue)
        self.complete(task, *commands, **fields)
        return task

    def fail_task(self, task: Message, cause: str = "WORKFLOW_WORKER_UNHANDLED_FAILURE", **fields) -> None:
        fields = {"cause": f"WORKFLOW_TASK_FAILED_CAUSE_{cause}", "failure": failure("no idea")} | fields
        self.call("RespondWorkflowTaskFailed", task_token=task.task_token, **fields)

    def finish_activity(self, task: Message, result: object = "done") -> None:
        self.call("RespondActivityTaskCompleted", task_token=task.task_token, result=payloads(result))

    def fail_activity(self, task: Message, why: dict) -> None:
        self.call("RespondActivityTaskFailed", task_token=task.task_token, failure=why)

    # ---- the record ------------------------------------------------------------------------------

    def read_runs(self) -> None:
        """Records the history and the description of every run that was seen, and of those they tell of."""
        done = 0
        while done < len(self._runs.runs):
            workflow_id, run_id = self._runs.runs[done]
            done += 1
            execution = {"workflow_id": workflow_id, "run_id": run_id}
            history = self.attempt("GetWorkflowExecutionHistory", execution=execution)
            if not isinstance(history, Refusal):
                self._learn_next_run(workflow_id, history)
            self._rename_last("history", run_id)
            self.attempt("DescribeWorkflowExecution", execution=execution)
            self._rename_last("description", run_id)

    def _rename_last(self, what: str, run_id: str) -> None:
        self._records[-1] = (f"{what} of {self._runs.name(run_id)}", self._records[-1][1])

    def _learn_next_run(self, workflow_id: str, answer: Message) -> None:
        for event in answer.history.events:
            attributes = getattr(event, event.WhichOneof("attributes") or "", None)
            self._runs.add(workflow_id, getattr(attributes, "new_execution_run_id", ""))

    def tree(self) -> dict[str, Tree]:
        record = {}
        for number, (name, answer) in enumerate(self._records, start=1):
            key = name if " of " in name else f"{number:02} {name}"
            is_message = isinstance(answer, Message)
            record[key] = tree_of(answer, self._runs) if is_message else answer.tree(self._runs)
        text = json.dumps(record).replace(self._mark, "") if self._mark else json.dumps(record)
        return json.loads(text if self._receiver is None else text.replace(self._receiver.address, "<receiver>"))

    @property
    def was_overloaded(self) -> bool:
        """Whether the server had no time for a call, which says nothing about how it would have answered."""
        codes = {answer.code for _, answer in self._records if isinstance(answer, Refusal)}
        return bool(codes & {"UNAVAILABLE", "DEADLINE_EXCEEDED"})
