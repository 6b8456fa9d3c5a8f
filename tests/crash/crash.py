"""Kills a server at random moments under load and checks that no acknowledged work was lost.

The server command is a template with {port}, {http_port} and {data}; data names a place that does
not exist yet and survives the kills. A failure prints the seed, and --seed repeats the choices.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from temporalio.client import Client
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from audit import Audit
from load import Load
from server import Server, ServerDidNotStart


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--server", required=True, help="command template of the server"
    )
    parser.add_argument(
        "--kills", type=int, default=20, help="how often to kill (default 20)"
    )
    parser.add_argument(
        "--lanes", type=int, default=8, help="workflows started side by side"
    )
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().getrandbits(32)
    )
    parser.add_argument("--keep", type=Path, help="use and keep this folder")
    return parser.parse_args()


def quiet_runtime() -> Runtime:
    """Stdout belongs to the report; the SDK would warn there of every retry."""
    levels = TelemetryFilter(core_level="ERROR", other_level="ERROR")
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=levels)))


async def start_worker(
    server: Server, folder: Path, queue: str
) -> asyncio.subprocess.Process:
    environment = os.environ | {
        "FAIRLEAD_ADDRESS": server.address,
        "TASK_QUEUE": queue,
        "EXECUTION_LOG": str(folder / "executions.jsonl"),
    }
    program = Path(__file__).with_name("worker.py")
    with (folder / "worker.log").open("ab") as log:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-B", str(program), env=environment, stdout=log, stderr=log
        )


async def crash_under_load(
    server: Server, load: Load, rng: random.Random, kills: int
) -> None:
    """Kills and restarts; the pauses differ so that every phase of the work gets hit."""
    for _ in range(kills):
        await asyncio.sleep(rng.uniform(0.3, 4.0))
        await server.kill()
        await asyncio.sleep(rng.choice([0.0, 0.0, rng.uniform(0.0, 1.0)]))
        await server.start()
    load.is_over.set()


async def run(arguments: argparse.Namespace, folder: Path) -> Audit:
    rng = random.Random(arguments.seed)
    queue = f"crash-{arguments.seed}-{time.time_ns()}"
    server = Server(arguments.server, folder)
    await server.start()
    worker = None
    try:
        client = await Client.connect(server.address, runtime=quiet_runtime())
        worker = await start_worker(server, folder, queue)
        load = Load(client, queue, rng)
        await asyncio.gather(
            load.run(arguments.lanes),
            crash_under_load(server, load, rng, arguments.kills),
        )
        audit = Audit(client, folder / "executions.jsonl")
        await audit.run(load, arguments.kills)
        signals = sum(len(journey.letters) for journey in load.workflows)
        stamps = sum(len(journey.stamps) for journey in load.workflows)
        rejected = sum(len(journey.rejected) for journey in load.workflows)
        children = sum(journey.companions for journey in load.workflows)
        print(
            f"# {arguments.kills} kills, {len(load.workflows)} workflows with {children} children,"
            f" {signals} signals and {stamps} updates acknowledged, {rejected} updates rejected,"
            f" {load.refused} requests refused,"
            f" {audit.activities_executed} activity executions"
        )
        return audit
    finally:
        if worker is not None and worker.returncode is None:
            worker.terminate()
            await worker.wait()
        await server.stop()


def main() -> int:
    arguments = parse_arguments()
    print(f"# seed {arguments.seed}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairlead-crash-") as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            audit = asyncio.run(run(arguments, folder))
        except ServerDidNotStart as error:
            print(f"not ok - crash: the server starts again after every kill: {error}")
            return 1
    print("ok - crash: the server starts again after every kill")
    for claim, complaints in audit.complaints.items():
        if complaints:
            print(
                f"not ok - crash: {claim}: {len(complaints)} times, first {complaints[0]}"
            )
            print("\n".join(complaints), file=sys.stderr)
        else:
            print(f"ok - crash: {claim}")
    print(f"# {time.monotonic() - started:.0f} s, seed {arguments.seed}")
    return int(any(audit.complaints.values()))


if __name__ == "__main__":
    sys.exit(main())
