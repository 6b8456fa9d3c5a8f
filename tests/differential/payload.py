"""Payloads, failures and commands, in short."""

from __future__ import annotations

import json
from datetime import timedelta

from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import CommandType


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def payload(value: object) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(value).encode())


def payloads(*values: object) -> Payloads:
    return Payloads(payloads=[payload(value) for value in values])


def failure(message: str = "broken", kind: str = "Oops", **fields) -> dict:
    return {"message": message, "source": "Script", "application_failure_info": {"type": kind} | fields}


def command(name: str, _attributes: str = "", /, user_metadata: dict | None = None, **fields) -> Command:
    """A command by the name of its type; its attributes are found under the same name."""
    attributes = _attributes or f"{name.lower()}_command_attributes"
    made = Command(command_type=CommandType.Value(f"COMMAND_TYPE_{name}"), **{attributes: fields})
    getattr(made, attributes).SetInParent()
    if user_metadata is not None:
        made.user_metadata.MergeFrom(type(made.user_metadata)(**user_metadata))
    return made


def schedule_activity(activity_id: str = "activity", **fields) -> Command:
    fields = {
        "activity_type": {"name": "Act"},
        "input": payloads("for the activity"),
        "schedule_to_close_timeout": seconds(100),
    } | fields
    return command("SCHEDULE_ACTIVITY_TASK", activity_id=activity_id, **fields)


def cancel_activity(scheduled_event_id: int) -> Command:
    return command("REQUEST_CANCEL_ACTIVITY_TASK", scheduled_event_id=scheduled_event_id)


def start_timer(timer_id: str = "timer", after_s: float = 1, **fields) -> Command:
    return command("START_TIMER", timer_id=timer_id, start_to_fire_timeout=seconds(after_s), **fields)


def cancel_timer(timer_id: str = "timer") -> Command:
    return command("CANCEL_TIMER", timer_id=timer_id)


def complete_workflow(result: object = "result") -> Command:
    return command("COMPLETE_WORKFLOW_EXECUTION", result=payloads(result))


def fail_workflow(**fields) -> Command:
    return command("FAIL_WORKFLOW_EXECUTION", failure=failure(**fields))


def cancel_workflow() -> Command:
    return command("CANCEL_WORKFLOW_EXECUTION", details=payloads("cancelled"))


def continue_as_new(**fields) -> Command:
    fields = {"workflow_type": {"name": "Type"}, "input": payloads("next")} | fields
    return command("CONTINUE_AS_NEW_WORKFLOW_EXECUTION", **fields)


def start_child(workflow_id: str, **fields) -> Command:
    fields = {"workflow_type": {"name": "Child"}, "input": payloads("for the child")} | fields
    return command("START_CHILD_WORKFLOW_EXECUTION", workflow_id=workflow_id, **fields)


def signal_external(workflow_id: str, **fields) -> Command:
    fields = {"signal_name": "hello", "input": payloads("hello"), "execution": {"workflow_id": workflow_id}} | fields
    return command("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION", **fields)


def cancel_external(workflow_id: str, **fields) -> Command:
    return command("REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION", workflow_id=workflow_id, **fields)


def record_marker(name: str = "marker", **fields) -> Command:
    return command("RECORD_MARKER", marker_name=name, **fields)
