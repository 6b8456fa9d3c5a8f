"""Timers, markers, search attributes and memos."""

from __future__ import annotations

from payload import (
    cancel_timer,
    command,
    complete_workflow,
    failure,
    payload,
    payloads,
    record_marker,
    schedule_activity,
    start_timer,
)
from registry import scenario
from temporalio.api.command.v1 import Command
from world import World


def change_version(*versions: str) -> dict:
    return {"indexed_fields": {"TemporalChangeVersion": payload(list(versions))}}


@scenario
def timer_fires(world: World) -> None:
    world.start()
    world.turn(start_timer(user_metadata={"summary": payload("a nap"), "details": payload("a long nap")}))
    world.turn(complete_workflow())


@scenario
def timers_fire_in_the_order_of_their_time(world: World) -> None:
    world.start()
    world.turn(start_timer("long", 2), start_timer("short", 1))
    world.turn()
    world.turn(complete_workflow())


@scenario
def timer_of_no_length(world: World) -> None:
    world.start()
    world.turn(start_timer(after_s=0))
    world.turn(complete_workflow())


@scenario
def timer_is_cancelled(world: World) -> None:
    world.start()
    world.turn(start_timer(after_s=60))
    world.signal("go")
    world.turn(cancel_timer(), start_timer("timer", 50))
    world.signal("end")
    world.turn(cancel_timer(), complete_workflow())


@scenario
def timer_is_cancelled_in_the_task_that_starts_it(world: World) -> None:
    world.start()
    world.turn(start_timer(after_s=60), cancel_timer(), complete_workflow())


@scenario
def timer_is_cancelled_after_it_fired(world: World) -> None:
    world.start()
    world.turn(start_timer(after_s=1))
    world.signal("go")
    task = world.poll()
    # It fires while the task runs, so its event is buffered, and the command takes it out again.
    world.wait_s(3)
    world.complete(task, cancel_timer(), complete_workflow())


@scenario
def markers(world: World) -> None:
    world.start()
    world.turn(
        record_marker("plain"),
        record_marker(
            "full",
            details={"data": payloads("a"), "more": payloads("b", "c")},
            header={"fields": {"trace": payload("t")}},
            failure=failure(),
        ),
        complete_workflow(),
    )


def upsert(attributes: dict) -> Command:
    return command("UPSERT_WORKFLOW_SEARCH_ATTRIBUTES", search_attributes=attributes)


@scenario
def search_attributes_are_changed(world: World) -> None:
    world.start(search_attributes=change_version("a"))
    world.describe()
    world.turn(upsert(change_version("a", "b")))
    world.describe()
    world.signal("go")
    typed = change_version("c")
    typed["indexed_fields"]["TemporalChangeVersion"].metadata["type"] = b"KeywordList"
    world.turn(upsert(typed))
    world.describe()
    world.signal("end")
    world.turn(upsert({"indexed_fields": {"TemporalChangeVersion": payload(None)}}), complete_workflow())


@scenario
def search_attributes_of_every_type(world: World) -> None:
    attributes = {
        "BatcherUser": payload("somebody"),
        "TemporalScheduledStartTime": payload("2024-01-02T03:04:05Z"),
        "TemporalSchedulePaused": payload(True),
        "TemporalChangeVersion": payload("single"),
        "BinaryChecksums": payload([]),
    }
    for name, value in attributes.items():
        fields = world.start_fields(name, search_attributes={"indexed_fields": {name: value}})
        world.attempt("StartWorkflowExecution", **fields)


@scenario
def memo_is_changed(world: World) -> None:
    world.start(memo={"fields": {"keep": payload(1), "drop": payload(2)}})
    world.describe()
    nothing = payload(None)
    nothing.metadata["encoding"] = b"binary/null"
    nothing.data = b""
    world.turn(
        command("MODIFY_WORKFLOW_PROPERTIES", upserted_memo={"fields": {"new": payload(3), "drop": nothing}}),
        complete_workflow(),
    )


@scenario
def completion_metadata(world: World) -> None:
    world.start()
    world.turn(
        sdk_metadata={"core_used_flags": [1, 2], "lang_used_flags": [3], "sdk_name": "script", "sdk_version": "1.2.3"},
        metering_metadata={"nonfirst_local_activity_execution_attempts": 2},
    )
    world.describe()
    world.signal("go")
    world.turn(complete_workflow(), binary_checksum="checksum")


@scenario
def everything_in_one_task(world: World) -> None:
    world.start()
    world.turn(
        record_marker(),
        start_timer(after_s=60),
        schedule_activity(),
        command("UPSERT_WORKFLOW_SEARCH_ATTRIBUTES", search_attributes=change_version("a")),
        command("MODIFY_WORKFLOW_PROPERTIES", upserted_memo={"fields": {"new": payload(3)}}),
        start_timer("other", 70),
        cancel_timer(),
        complete_workflow(),
    )
