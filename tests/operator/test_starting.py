"""What someone meets who comes while the server starts."""

import os
import socket
import subprocess

from server import Server


def is_open(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_who_finds_the_grpc_port_finds_the_http_port(server: Server) -> None:
    # Programs wait for one of the two and then use both.
    server.process = subprocess.Popen(
        [os.environ["FAIRLEAD_BINARY"], "server", "--grpc-port", str(server.port),
         "--http-port", str(server.http_port), "--data-dir", str(server.folder / "data")]
    )
    while not is_open(server.port):
        assert server.process.poll() is None
    assert is_open(server.http_port)
