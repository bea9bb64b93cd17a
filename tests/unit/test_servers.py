"""How the tests start servers: see tests/servers.py."""

import re
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import KeptPort, ServerFailedError, ServerProcess
from tests.sparksession import wait_for

ROOT = Path(__file__).parents[2]
HERE = "127.0.0.1"


@pytest.fixture
def port() -> Iterator[KeptPort]:
    port = KeptPort()
    yield port
    port.close()


def test_a_kept_port_is_refused_until_a_server_listens_and_kept_between_two(port: KeptPort) -> None:
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HERE, port.number))
        with socket.create_server((HERE, port.number)) as server, socket.create_connection((HERE, port.number)):
            server.accept()[0].close()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((HERE, port.number))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a socket narrow the range of its ports")
def test_nobody_who_asks_for_any_port_gets_a_kept_one(port: KeptPort) -> None:
    """Any port of a range in which there is no other."""
    ip_local_port_range, alone = 51, struct.pack("I", port.number << 16 | port.number)
    with socket.socket() as asking:
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            asking.setsockopt(socket.IPPROTO_IP, ip_local_port_range, alone)
        except OSError:
            pytest.skip("Linux before 6.3 has no such option")
        with pytest.raises(OSError, match="in use"):
            asking.bind((HERE, 0))


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("print('no room'); raise SystemExit(3)", r"Its server has ended with exit code 3\. It said last:\nno room"),
        ("raise SystemExit(3)", r"exit code 3\. It said last:\n\(nothing\)"),
        ("import sys, time; print('hm', file=sys.stderr); time.sleep(60)", r"does not answer after 1 s.*\nhm"),
    ],
)
def test_a_start_that_fails_is_told_with_exit_code_and_last_words(tmp_path: Path, program: str, told: str) -> None:
    server, waits = ServerProcess("Its server", tmp_path / "log"), "sleep" in program

    def never() -> None:
        if waits:
            wait_for(lambda: "hm" in server.log_file.read_text(), "its words")

    with pytest.raises(ServerFailedError) as caught:
        server.start([sys.executable, "-u", "-c", program], never, seconds=1 if waits else 60)
    assert re.search(told, str(caught.value))
    assert not server.runs()


def test_a_server_is_started_again_on_its_port(tmp_path: Path, port: KeptPort) -> None:
    """It listens before it says so: killed in between, it would have answered and said nothing."""
    server = ServerProcess("Python's server", tmp_path / "log")
    command = [sys.executable, "-u", "-m", "http.server", "-b", HERE, port]
    for started in (1, 2):
        server.start(command, lambda n=started: _answers(port) and server.log().count("Serving HTTP") == n)
        assert server.end(signal.SIGKILL) == -signal.SIGKILL


def test_no_test_takes_a_port_that_was_free_a_moment_ago() -> None:
    """Sockets are bound in one file of the tests, in an example that cannot use it, and to a name without a port."""
    files = [
        file for folder in ("tests", "examples", "benchmarks", "scripts") for file in (ROOT / folder).rglob("*.py")
    ]
    binding = {str(file.relative_to(ROOT)) for file in files if re.search(r"\.bind\(", file.read_text())}
    without_port = "tests/startup/parent.py"
    assert binding == {"tests/servers.py", "tests/unit/test_servers.py", "examples/cluster_processes.py", without_port}


def _answers(port: KeptPort) -> bool:
    try:
        socket.create_connection((HERE, port.number)).close()
    except OSError:
        return False
    return True
