"""Servers to measure: found or built, started on an empty folder, killed, stopped.

What `compare` and `fairness` share, and tests/differential uses.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("FAIRLEAD_CACHE", pathlib.Path.home() / ".cache/fairlead"))
TEMPORAL_CLI = "github.com/temporalio/cli/cmd/temporal@v1.5.1"
TEMPORAL_SERVER_VERSION = "v1.32.1"
TEMPORAL_SERVER = f"go.temporal.io/server/cmd/server@{TEMPORAL_SERVER_VERSION}"
SERVER_READY_S = 30


def say(text):
    print(text, file=sys.stderr, flush=True)


def fail(text):
    say(f"{pathlib.Path(sys.argv[0]).name}: {text}")
    sys.exit(1)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_listening(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Fairlead:
    name = "Fairlead"
    is_fairlead = True

    def __init__(self, binary, settings=""):
        self.binary = binary
        self.settings = settings
        self.http_port = None

    def command(self, port, folder):
        self.http_port = free_port()
        config = pathlib.Path(f"{folder}/fairlead.toml")
        config.write_text(self.settings)
        return [self.binary, "server", "--config", str(config), "--grpc-port", str(port),
                "--http-port", str(self.http_port), "--data-dir", f"{folder}/data"]


class Temporal:
    """The development server inside Temporal's CLI, with a database file."""

    name = "Temporal"
    is_fairlead = False

    def __init__(self, binary, journal):
        self.binary = binary
        self.pragmas = [f"journal_mode={journal.upper()}", "synchronous=FULL"]

    def command(self, port, folder):
        command = [self.binary, "server", "start-dev", "--headless", "--ip", "127.0.0.1",
                   "--port", str(port), "--db-filename", f"{folder}/temporal.db",
                   "--log-level", "error",
                   # The default admits 1200 parked polls in a namespace.
                   "--dynamic-config-value", "frontend.namespaceCount=20000"]
        for pragma in self.pragmas:
            command += ["--sqlite-pragma", pragma]
        return command


class TemporalServer:
    """Temporal's server itself, all services in one process, with a database file.

    Newer than the one inside the CLI that can be installed, and as durable: a write-ahead log,
    synced at every commit. It has no namespace until someone registers one.
    """

    is_fairlead = False

    def __init__(self, binary, name="Temporal", settings=None):
        self.binary = binary
        self.name = name
        self.settings = settings or {}

    def command(self, port, folder):
        # YAML by its name, JSON by its looks: the one contains the other.
        settings = {key: [{"value": value}] for key, value in self.settings.items()}
        pathlib.Path(f"{folder}/settings.yaml").write_text(json.dumps(settings))
        pathlib.Path(f"{folder}/config.yaml").write_text(json.dumps(self.config(port, folder)))
        return [self.binary, "--config-file", f"{folder}/config.yaml", "--allow-no-auth", "start"]

    def config(self, port, folder):
        database = {"sql": {
            "pluginName": "sqlite", "databaseName": f"{folder}/temporal.db",
            "connectAddr": "localhost", "connectProtocol": "tcp", "maxConns": 1, "maxIdleConns": 1,
            "connectAttributes": {"cache": "private", "setup": True, "journal_mode": "wal",
                                  "synchronous": "2"},
        }}
        ports = {"frontend": port, "history": free_port(), "matching": free_port(),
                 "worker": free_port()}
        return {
            "log": {"stdout": True, "level": "error"},
            "persistence": {"defaultStore": "main", "visibilityStore": "main",
                            "numHistoryShards": 1, "datastores": {"main": database}},
            "global": {"membership": {"maxJoinDuration": "30s", "broadcastAddress": "127.0.0.1"}},
            "services": {name: {"rpc": {"grpcPort": number, "membershipPort": free_port(),
                                        "bindOnLocalHost": True}}
                         for name, number in ports.items()},
            "clusterMetadata": {
                "failoverVersionIncrement": 10,
                "masterClusterName": "active", "currentClusterName": "active",
                "clusterInformation": {"active": {
                    "enabled": True, "initialFailoverVersion": 1, "rpcName": "frontend",
                    "rpcAddress": f"127.0.0.1:{port}"}}},
            "dcRedirectionPolicy": {"policy": "noop"},
            "publicClient": {"hostPort": f"127.0.0.1:{port}"},
            "dynamicConfigClient": {"filepath": f"{folder}/settings.yaml", "pollInterval": "10s"},
        }


class Running:
    """A server on an empty data folder: `with Running(server) as it`. Both are gone afterwards."""

    settle_s = 5

    def __init__(self, server):
        self.server = server
        self.folder = tempfile.mkdtemp(prefix="fairlead-bench-")
        self.port = free_port()
        self.command = server.command(self.port, self.folder)
        self.process = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process is not None:
            stop(self.process)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pid(self):
        return self.process.pid

    def start(self):
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + SERVER_READY_S
        while not is_listening(self.port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                tail = pathlib.Path(f"{self.folder}/log").read_text(errors="replace")[-2000:]
                fail(f"{self.server.name} does not listen on port {self.port}:\n{tail}")
            time.sleep(0.05)
        # What a server does right after its start is neither idle nor load.
        time.sleep(self.settle_s)

    def crash(self):
        """Ends it without a word, and starts it again on what is on its disk."""
        self.process.kill()
        self.process.wait()
        self.start()


def stop(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def find_go_program(path, package, folder):
    """The program at `path`, or else the one that go makes of `package` into a folder of the cache."""
    if path:
        return path
    cached = CACHE / folder / package.partition("@")[0].rpartition("/")[2]
    if not cached.exists():
        say(f"building {package}")
        subprocess.run(["go", "install", package], check=True, stdout=sys.stderr,
                       env={**os.environ, "GOBIN": str(cached.parent)})
    return str(cached)


def find_temporal(path):
    return find_go_program(path, TEMPORAL_CLI, "bin")


def find_temporal_server(path):
    return find_go_program(path, TEMPORAL_SERVER, f"temporal-server-{TEMPORAL_SERVER_VERSION}")


def find_fairlead(path):
    if path:
        return path
    built = subprocess.run([ROOT / "run", "build"], check=True, stdout=subprocess.PIPE, text=True)
    return built.stdout.strip().splitlines()[-1]


def find_load(path, target="fairlead_load"):
    if path:
        return path
    subprocess.run(["cmake", "--preset", "release"], cwd=ROOT, check=True, stdout=sys.stderr)
    subprocess.run(["cmake", "--build", "--preset", "release", "--target", target],
                   cwd=ROOT, check=True, stdout=sys.stderr)
    return str(ROOT / "build/release/bench" / target)


def add_common_options(parser):
    parser.add_argument("--fairlead", metavar="PATH", help="binary; otherwise ./run build makes it")
    parser.add_argument("--temporal", metavar="PATH", help="binary; otherwise go install makes it")
    parser.add_argument("--load", metavar="PATH", help="fairlead_load; otherwise it is built")
    parser.add_argument("--server", choices=["fairlead", "temporal", "both"], default="both")
    parser.add_argument("--markdown", action="store_true", help="as in docs/performance.md")


def stop_when_told():
    """So that servers are stopped and their data removed then too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def print_table(rows, is_markdown):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        print("| " + " | ".join(cells) + " |" if is_markdown else "  ".join(cells).rstrip())
        if number == 0:
            line = ["-" * width for width in widths]
            print("|-" + "-|-".join(line) + "-|" if is_markdown else "  ".join(line))


def print_machine(load_before):
    print(f"- {os.cpu_count()} cores, shared by server and load client; load average "
          f"{load_before:.1f} before, {os.getloadavg()[0]:.1f} after.")
