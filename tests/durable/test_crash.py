"""The server is killed under a worker that knows nothing of it, and comes back."""

import asyncio

from durable_workflow import Client

from conftest import Stage


def test_runs_and_workers_outlive_kill_9(server):
    async def script():
        async with Client(server.url, namespace="default") as client:
            stage = Stage(client, "crash")
            async with stage.worker():
                waiting = await stage.start("approval")
                assert (await waiting.query("status"))["result"]["approved_by"] is None
                sleeping = await stage.start("impatient", 3)
                racing = await stage.start("race-waiting", 3600)
                assert (await racing.query("status"))["result"] is None
                await asyncio.sleep(0.5)
                server.kill()
                server.start()
                await waiting.signal("approve", ["ada"])
                assert (await stage.result(waiting, timeout=60))["greeting"] == "hello, ada"
                assert await stage.result(sleeping, timeout=60) is False
                await racing.signal("approve", ["bo"])
                assert await stage.result(racing, timeout=60) == ["approved", "bo"]

    asyncio.run(script())
