"""Durable selection: of operations that are begun together the first to end wins."""


def test_an_activity_wins_and_the_timer_is_called_off(perform):
    async def script(stage):
        handle = await stage.start("race", "ada")
        assert await stage.result(handle) == ["hello, ada", "hello, work", [2, 4]]
        types = await stage.event_types(handle)
        assert types.count("SelectionResolved") == 1
        assert types.count("SelectionOperationCancelled") == 1
        assert types.count("ActivityScheduled") == 4, "nothing is begun twice"

    perform(script)


def test_a_timer_wins_over_a_condition_that_nobody_meets(perform):
    async def script(stage):
        assert await stage.run("race-waiting", 1) == ["deadline", None]

    perform(script)


def test_a_signal_ends_the_condition(perform):
    async def script(stage):
        handle = await stage.start("race-waiting", 3600)
        assert (await handle.query("status"))["result"] is None
        await handle.signal("approve", ["bo"])
        assert await stage.result(handle) == ["approved", "bo"]

    perform(script)


def test_a_signal_that_comes_first_ends_the_condition(perform):
    async def script(stage):
        handle = await stage.start("race-waiting", 3600)
        await handle.signal("approve", ["bo"])
        async with stage.worker():
            assert await stage.result(handle) == ["approved", "bo"]

    perform(script, with_worker=False)


def test_an_update_ends_the_condition(perform):
    async def script(stage):
        handle = await stage.start("race-waiting", 3600)
        assert (await handle.query("status"))["result"] is None
        answer = await handle.update("approve-now", ["cy"], wait_for="completed")
        assert answer["result"] == "thanks"
        assert await stage.result(handle) == ["approved", "cy"]

    perform(script)


def test_a_condition_has_a_time_of_its_own(perform):
    async def script(stage):
        assert await stage.run("race-impatient") == ["never", False]

    perform(script)


def test_those_that_have_lost_go_on(perform):
    async def script(stage):
        handle = await stage.start("race-all")
        assert await stage.result(handle) == {"one": 2, "two": [4, 6], "child": "HELLO, ADA", "nap": None}
        assert (await stage.event_types(handle)).count("SelectionResolved") == 1

    perform(script)


def test_a_failure_wins(perform):
    async def script(stage):
        assert await stage.run("race-failing") == ["bad", False, "ActivityFailed"]

    perform(script)
