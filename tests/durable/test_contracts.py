"""What the SDK's workers declare that their workflows take is held against what clients send."""

import pytest
from durable_workflow.errors import InvalidArgument, QueryFailed, ServerError, SignalFailed


def test_a_signal_that_no_handler_takes_is_refused(perform):
    async def script(stage):
        async with stage.worker() as worker:
            await stage.until(lambda: stage.is_registered(worker))
            handle = await stage.start("approval")
            with pytest.raises(SignalFailed):
                await handle.signal("nonsense")
            with pytest.raises(SignalFailed):
                await stage.client.signal_workflow(handle.workflow_id, "nonsense")
            with pytest.raises(SignalFailed):
                await handle.signal("approve", [])
            with pytest.raises(SignalFailed):
                await handle.signal("approve", ["ada", "bo"])
            await handle.signal("approve", ["ada"])
            assert (await stage.result(handle))["greeting"] == "hello, ada"
            assert "SignalReceived" in await stage.event_types(handle)

    perform(script, with_worker=False)


def test_a_query_that_no_handler_answers_is_refused_without_a_worker(perform):
    async def script(stage):
        async with stage.worker() as worker:
            await stage.until(lambda: stage.is_registered(worker))
            handle = await stage.start("approval")
            with pytest.raises(QueryFailed):
                await handle.query("nonsense")
            with pytest.raises(QueryFailed):
                await handle.query("status", ["too many"])
            assert (await handle.query("status"))["result"]["approved_by"] is None
            await handle.signal("approve", ["ada"])
            await stage.result(handle)

    perform(script, with_worker=False)


def test_an_update_that_no_handler_takes_is_refused(perform):
    async def script(stage):
        async with stage.worker() as worker:
            await stage.until(lambda: stage.is_registered(worker))
            handle = await stage.start("account")
            with pytest.raises(ServerError) as unknown:
                await handle.update("nonsense", [])
            assert unknown.value.reason() == "unknown_update"
            with pytest.raises(InvalidArgument):
                await handle.update("deposit", [])
            assert (await handle.update("deposit", [5], wait_for="completed"))["result"] == 5
            await handle.update("close", [], wait_for="completed")
            await stage.result(handle)

    perform(script, with_worker=False)


def test_what_nobody_has_declared_yet_is_accepted(perform):
    async def script(stage):
        handle = await stage.start("approval")
        await handle.signal("nonsense")
        async with stage.worker():
            await handle.signal("approve", ["ada"])
            assert (await stage.result(handle))["greeting"] == "hello, ada"

    perform(script, with_worker=False)
