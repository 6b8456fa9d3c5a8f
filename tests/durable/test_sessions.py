"""Worker sessions: steps that go to one worker, because of what that worker keeps."""

import asyncio
import contextlib
import subprocess
import sys
import uuid

import pytest
from durable_workflow import Client, Worker, WorkerSessionOptions, activity, workflow
from durable_workflow.errors import ServerError

from conftest import URL, Stage


@activity.defn(name="where")
async def where(seconds: float = 0) -> str:
    await asyncio.sleep(seconds)
    return activity.context().info.worker_id


@workflow.defn(name="in-session")
class InSession:
    """Says which worker each of its steps went to."""

    def run(self, ctx, session, steps, options, pause):
        session = WorkerSessionOptions(session_id=session, **options)
        places = []
        for _ in range(steps):
            places.append((yield ctx.schedule_activity(
                "where", [0.0], worker_session=session, schedule_to_start_timeout=20)))
            if pause:
                yield ctx.sleep(pause)
        return places


@workflow.defn(name="in-session-together")
class InSessionTogether:
    def run(self, ctx, session, count):
        session = WorkerSessionOptions(session_id=session, max_concurrent_activities=count)
        return (yield [ctx.schedule_activity("where", [0.2], worker_session=session) for _ in range(count)])


WORK = {"workflows": [InSession, InSessionTogether], "activities": [where]}


@contextlib.asynccontextmanager
async def two_workers(stage: Stage, **options):
    async with stage.worker(worker_id=f"{stage.queue}-a", **(WORK | options)) as one:
        async with stage.worker(worker_id=f"{stage.queue}-b", **(WORK | options)) as two:
            await stage.until(lambda: stage.is_registered(one))
            await stage.until(lambda: stage.is_registered(two))
            yield one, two


def test_all_steps_of_a_session_go_to_one_worker(perform):
    async def script(stage):
        async with two_workers(stage):
            handles = [await stage.start("in-session", f"s-{uuid.uuid4().hex}", 6, {}, 0) for _ in range(6)]
            for handle in handles:
                places = await stage.result(handle, timeout=60)
                assert len(places) == 6 and len(set(places)) == 1

    perform(script, with_worker=False)


def test_steps_of_a_session_may_run_together(perform):
    async def script(stage):
        async with two_workers(stage):
            places = await stage.run("in-session-together", f"s-{uuid.uuid4().hex}", 4)
            assert len(places) == 4 and len(set(places)) == 1

    perform(script, with_worker=False)


def test_a_session_goes_to_a_worker_that_has_what_it_requires(perform):
    async def script(stage):
        async with stage.worker(worker_id=f"{stage.queue}-plain", **WORK):
            async with stage.worker(worker_id=f"{stage.queue}-gpu", capabilities=["gpu:l4"], **WORK):
                places = await stage.run(
                    "in-session", f"s-{uuid.uuid4().hex}", 3, {"requirements": ["gpu:l4"]}, 0)
                assert set(places) == {f"{stage.queue}-gpu"}

    perform(script, with_worker=False)


def test_another_worker_takes_over_when_one_dies(perform):
    async def script(stage):
        # In a process of its own: a worker that is only cancelled says goodbye.
        dying = subprocess.Popen([sys.executable, __file__, stage.queue, f"{stage.queue}-dying"])
        session = f"s-{uuid.uuid4().hex}"
        handle = await stage.start("in-session", session, 3, {"lease_seconds": 2}, 1)

        async def has_stepped():
            return (await stage.event_types(handle)).count("ActivityCompleted") >= 1

        await stage.until(has_stepped)
        dying.kill()
        dying.wait()
        async with stage.worker(worker_id=f"{stage.queue}-heir", **WORK):
            places = await stage.result(handle, timeout=60)
        assert places[0] == f"{stage.queue}-dying"
        assert places[-1] == f"{stage.queue}-heir"

    perform(script, with_worker=False)


def test_a_worker_holds_as_many_sessions_as_it_has_slots(perform):
    async def script(stage):
        async with stage.worker(max_concurrent_worker_sessions=1, **WORK) as worker:
            await stage.until(lambda: stage.is_registered(worker))
            held = worker.worker_session(WorkerSessionOptions(session_id=f"s-{uuid.uuid4().hex}"))
            assert (await held.create())["outcome"] == "created"
            handle = await stage.start("in-session", f"s-{uuid.uuid4().hex}", 1, {}, 0)
            await asyncio.sleep(1.0)
            assert "ActivityStarted" not in await stage.event_types(handle)
            other = worker.worker_session(WorkerSessionOptions(session_id=f"s-{uuid.uuid4().hex}"))
            with pytest.raises(ServerError) as refused:
                await other.create()
            assert refused.value.reason() == "worker_session_limit_exceeded"
            assert (await held.renew(60))["outcome"] == "heartbeat_recorded"
            assert (await held.close())["outcome"] == "closed"
            assert await stage.result(handle) == [worker.worker_id]
            record = await stage.client.describe_worker(worker.worker_id)
            assert record.task_slots["session_capacity"] == 1

    perform(script, with_worker=False)


def test_a_worker_that_stops_closes_its_sessions_for_good(perform):
    async def script(stage):
        options = WorkerSessionOptions(session_id=f"s-{uuid.uuid4().hex}")
        async with stage.worker(**WORK) as worker:
            assert await stage.run("in-session", options.session_id, 1, {}, 0) == [worker.worker_id]
        async with stage.worker(**WORK) as worker:
            await stage.until(lambda: stage.is_registered(worker))
            with pytest.raises(ServerError) as refused:
                await worker.worker_session(options).create()
            assert refused.value.reason() == "session_closed"

    perform(script, with_worker=False)


def test_a_session_outlives_kill_9(server):
    async def script():
        async with Client(server.url, namespace="default") as client:
            stage = Stage(client, "sessions")
            async with two_workers(stage):
                handle = await stage.start("in-session", "s", 4, {}, 1)

                async def has_stepped():
                    return (await stage.event_types(handle)).count("ActivityCompleted") >= 2

                await stage.until(has_stepped)
                server.kill()
                server.start()
                places = await stage.result(handle, timeout=60)
                assert len(places) == 4 and len(set(places)) == 1

    asyncio.run(script())


async def work(queue: str, worker_id: str) -> None:
    async with Client(URL, namespace="default") as client:
        await Worker(client, task_queue=queue, worker_id=worker_id, poll_timeout=5.0, **WORK).run()


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
