"""Children: every end one can have, and what becomes of them when the parent ends."""

from __future__ import annotations

from payload import (
    cancel_external,
    cancel_workflow,
    complete_workflow,
    continue_as_new,
    fail_workflow,
    payload,
    seconds,
    signal_external,
    start_child,
)
from registry import scenario
from world import World

RETRY = {"initial_interval": seconds(1), "maximum_attempts": 2}


def have_child(world: World, **fields) -> None:
    """A parent whose child has been started, and which knows it."""
    world.start()
    world.turn(start_child(world.id("child"), **fields))
    world.turn()


def end(world: World) -> None:
    world.turn(complete_workflow())


@scenario
def child_completes(world: World) -> None:
    have_child(world)
    world.describe()
    world.turn(complete_workflow("from the child"), queue=world.children)
    end(world)


@scenario
def child_with_every_option(world: World) -> None:
    have_child(
        world,
        workflow_execution_timeout=seconds(100),
        workflow_run_timeout=seconds(90),
        workflow_task_timeout=seconds(8),
        parent_close_policy="PARENT_CLOSE_POLICY_ABANDON",
        control="control",
        workflow_id_reuse_policy="WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE",
        retry_policy=RETRY,
        header={"fields": {"trace": payload("t")}},
        memo={"fields": {"m": payload(1)}},
        search_attributes={"indexed_fields": {"TemporalChangeVersion": payload(["a"])}},
        priority={"priority_key": 2, "fairness_key": "tenant"},
        user_metadata={"summary": payload("sum"), "details": payload("det")},
    )
    world.turn(complete_workflow(), queue=world.children)
    end(world)


@scenario
def child_fails(world: World) -> None:
    have_child(world)
    world.turn(fail_workflow(), queue=world.children)
    end(world)


@scenario
def child_is_cancelled(world: World) -> None:
    have_child(world)
    world.signal("go")
    world.turn(cancel_external(world.id("child"), child_workflow_only=True, reason="enough"))
    world.turn()
    world.turn(cancel_workflow(), queue=world.children)
    end(world)


@scenario
def child_is_terminated(world: World) -> None:
    have_child(world)
    world.terminate("child", reason="enough")
    end(world)


@scenario
def child_times_out(world: World) -> None:
    have_child(world, workflow_run_timeout=seconds(2))
    end(world)


@scenario
def child_is_retried(world: World) -> None:
    have_child(world, retry_policy=RETRY)
    world.turn(fail_workflow(), queue=world.children)
    world.turn(complete_workflow(), queue=world.children)
    end(world)


@scenario
def child_uses_up_its_attempts(world: World) -> None:
    have_child(world, retry_policy=RETRY)
    world.turn(fail_workflow(), queue=world.children)
    world.turn(fail_workflow(), queue=world.children)
    end(world)


@scenario
def child_continues_as_new(world: World) -> None:
    have_child(world)
    world.turn(continue_as_new(task_queue={"name": world.children}), queue=world.children)
    world.describe()
    world.turn(complete_workflow(), queue=world.children)
    end(world)


@scenario
def child_exists_already(world: World) -> None:
    world.start("child", task_queue={"name": world.children})
    world.start()
    world.turn(start_child(world.id("child")))
    end(world)


@scenario
def child_id_was_used(world: World) -> None:
    world.start("child", task_queue={"name": world.children})
    world.turn(complete_workflow(), queue=world.children)
    world.start()
    world.turn(start_child(world.id("child"), workflow_id_reuse_policy="WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE"))
    world.turn(start_child(world.id("child"), workflow_id_reuse_policy="WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY"))
    world.turn(start_child(world.id("child")))
    world.turn(complete_workflow())
    world.wait_for("WORKFLOW_EXECUTION_TERMINATED", "child")


@scenario
def child_without_a_queue(world: World) -> None:
    world.start()
    world.turn(start_child(world.id("child"), task_queue={}))
    child, parent = world.poll_tasks(2)
    world.complete(parent)
    world.complete(child, complete_workflow())
    end(world)


@scenario
def child_of_a_child(world: World) -> None:
    have_child(world)
    grandchild = start_child(world.id("grandchild"), task_queue={"name": f"{world.queue}-grandchildren"})
    world.turn(grandchild, queue=world.children)
    world.turn(queue=world.children)
    world.turn(complete_workflow(), queue=f"{world.queue}-grandchildren")
    world.turn(complete_workflow(), queue=world.children)
    end(world)


@scenario
def parent_completes_and_terminates_its_child(world: World) -> None:
    have_child(world)
    world.signal("end")
    end(world)
    world.wait_for("WORKFLOW_EXECUTION_TERMINATED", "child")


@scenario
def parent_completes_and_cancels_its_child(world: World) -> None:
    have_child(world, parent_close_policy="PARENT_CLOSE_POLICY_REQUEST_CANCEL")
    world.signal("end")
    end(world)
    world.wait_for("WORKFLOW_EXECUTION_CANCEL_REQUESTED", "child")
    world.turn(cancel_workflow(), queue=world.children)


@scenario
def parent_completes_and_leaves_its_child(world: World) -> None:
    have_child(world, parent_close_policy="PARENT_CLOSE_POLICY_ABANDON")
    world.signal("end")
    end(world)
    world.turn(complete_workflow(), queue=world.children)


@scenario
def parent_is_terminated(world: World) -> None:
    have_child(world)
    world.terminate()
    world.wait_for("WORKFLOW_EXECUTION_TERMINATED", "child")


@scenario
def parent_fails_and_is_retried(world: World) -> None:
    world.start(retry_policy=RETRY)
    world.turn(start_child(world.id("child")))
    world.turn()
    world.signal("end")
    world.turn(fail_workflow())
    world.wait_for("WORKFLOW_EXECUTION_TERMINATED", "child")
    end(world)


@scenario
def child_ends_during_a_task(world: World) -> None:
    have_child(world)
    world.signal("go")
    task = world.poll()
    world.signal("one")
    world.turn(complete_workflow(), queue=world.children)
    world.wait_s(1)
    world.signal("two")
    world.complete(task)
    end(world)


@scenario
def child_is_signalled(world: World) -> None:
    have_child(world)
    world.signal("go")
    world.turn(signal_external(world.id("child"), child_workflow_only=True))
    world.turn()
    world.turn(complete_workflow(), queue=world.children)
    end(world)


# ---- letters to other workflows ------------------------------------------------------------------


@scenario
def letter_signal(world: World) -> None:
    world.start("target", task_queue={"name": world.children})
    world.start()
    world.turn(signal_external(world.id("target"), header={"fields": {"trace": payload("t")}}, control="control"))
    end(world)
    world.turn(complete_workflow(), queue=world.children)


@scenario
def letter_cancel(world: World) -> None:
    run_id = world.start("target", task_queue={"name": world.children})
    world.start()
    world.turn(cancel_external(world.id("target"), run_id=run_id, reason="enough", control="control"))
    end(world)
    world.turn(cancel_workflow(), queue=world.children)


@scenario
def letters_to_nobody(world: World) -> None:
    world.start()
    world.turn(signal_external(world.id("nobody")))
    world.turn(cancel_external(world.id("nobody")))
    nobody = {"workflow_id": world.id("nobody"), "run_id": "11111111-2222-3333-4444-555555555555"}
    world.turn(signal_external("", execution=nobody))
    end(world)


@scenario
def letters_to_the_dead(world: World) -> None:
    world.start("target", task_queue={"name": world.children})
    world.turn(complete_workflow(), queue=world.children)
    world.start()
    world.turn(signal_external(world.id("target")))
    world.turn(cancel_external(world.id("target")))
    end(world)


@scenario
def letters_to_oneself(world: World) -> None:
    world.start()
    world.turn(signal_external(world.id()))
    world.turn(cancel_external(world.id()))
    end(world)


@scenario
def letters_to_somebody_elses_child(world: World) -> None:
    world.start("target", task_queue={"name": world.children})
    world.start()
    world.turn(signal_external(world.id("target"), child_workflow_only=True))
    world.turn(cancel_external(world.id("target"), child_workflow_only=True))
    end(world)


@scenario
def letter_cancels_twice(world: World) -> None:
    world.start("target", task_queue={"name": world.children})
    world.start()
    world.turn(cancel_external(world.id("target"), reason="one"))
    world.turn(cancel_external(world.id("target"), reason="two"))
    end(world)
