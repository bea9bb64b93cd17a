"""Machines for a test: processes with a network, a process table and mounts of their own, where Linux allows that.

It allows it to root. Elsewhere a machine is a group of ordinary processes with a work folder of its own.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.servers import ServerProcess

LOOPBACK = "127.0.0.1"
_LIBRARY = ctypes.CDLL(None, use_errno=True)
_HIDE = 'for place in $HIDDEN; do mount -t tmpfs tmpfs "$place" || exit 9; done; ip link set lo up; exec "$@"'
_APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", _HIDE, "sh")


_TRY = """
ip netns add $NAME && ip link add $NAME type bridge && ip link add ${NAME}v type veth peer name eth0 netns $NAME &&
ip netns exec $NAME "$@"; tried=$?
ip netns del $NAME; exit $tried
"""
_NEW_NETWORK = 0x40000000
"""CLONE_NEWNET, which Python's ``os`` has since 3.12, as it has ``unshare`` and ``setns``."""


def allowed() -> bool:
    """Whether this process may make networks and mounts. Tries it, where there are the programs for it."""
    if not (shutil.which("unshare") and shutil.which("ip")):
        return False
    environment = {**os.environ, "NAME": f"rt{os.getpid()}t", "HIDDEN": tempfile.gettempdir()}
    command = ["unshare", "--net", "sh", "-c", _TRY, "sh", *_APART, "true"]
    return subprocess.run(command, env=environment, check=False, capture_output=True).returncode == 0


class Network:
    """A network of its own. ``address`` is this process's; machines have no way to any other address.

    The thread that makes it is in it until it is closed, with the threads and the processes that it starts meanwhile.
    This machine's own network stays as it is: a browser of other tests would end all its connections at a new address.
    Without the rights for it, all machines use the loopback address.
    """

    def __init__(self) -> None:
        self.apart, self._machines = allowed(), 1
        self._name, self._net = f"rt{os.getpid()}", f"10.{64 + os.getpid() // 256 % 128}.{os.getpid() % 256}"
        self.address = self._net + ".1" if self.apart else LOOPBACK
        if self.apart:
            self._outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
            _checked(_LIBRARY.unshare(_NEW_NETWORK))
            _ip("link", "set", "lo", "up")
            _ip("link", "add", self._name, "type", "bridge")
            _ip("addr", "add", f"{self.address}/24", "dev", self._name)
            _ip("link", "set", self._name, "up")

    def machine(self, folder: Path, hidden: Sequence[Path]) -> "Machine":
        """A machine whose processes see empty folders instead of those ``hidden``."""
        if not self.apart:
            return Machine(folder, LOOPBACK, (), ())
        self._machines += 1
        namespace, address = f"{self._name}n{self._machines}", f"{self._net}.{self._machines}"
        _ip("netns", "add", namespace)
        _ip("link", "add", namespace, "master", self._name, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        _ip("link", "set", namespace, "up")
        _ip("-n", namespace, "addr", "add", f"{address}/24", "dev", "eth0")
        _ip("-n", namespace, "link", "set", "eth0", "up")
        return Machine(folder, address, ("ip", "netns", "exec", namespace, *_APART), hidden, namespace)

    def close(self) -> None:
        """Removes the network. A namespace goes only after its last process, and its cable would stay until then."""
        if self.apart:
            for number in range(2, self._machines + 1):
                _ip("link", "del", f"{self._name}n{number}")
                _ip("netns", "del", f"{self._name}n{number}")
            _checked(_LIBRARY.setns(self._outside, _NEW_NETWORK))
            os.close(self._outside)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Machine:
    """Runs one command. All that the command has started ends with it."""

    def __init__(
        self, folder: Path, address: str, prefix: Sequence[str], hidden: Sequence[Path], cable: str = ""
    ) -> None:
        self.folder, self.address, self._cable = folder, address, cable
        self._prefix, self._hidden = prefix, hidden
        folder.mkdir(parents=True, exist_ok=True)
        self._server = ServerProcess(f"The machine {folder.name}", folder / "log")

    def start(self, command: Sequence[str], answers: Callable[[], object], seconds: float, **environment: Any) -> None:
        """Starts a command in the machine's folder, with these variables in addition to those of this process."""
        how = {"cwd": self.folder, "stdin": subprocess.DEVNULL, "start_new_session": True}
        environment = {**os.environ, **environment, "HIDDEN": " ".join(map(str, self._hidden))}
        self._server.start([*self._prefix, *command], answers, seconds, env=environment, **how)

    def log(self) -> str:
        """What its command has written so far."""
        return (self.folder / "log").read_text()

    def unplug(self) -> None:
        """Takes the machine off its network: nothing that is sent arrives, and nobody is told."""
        _ip("link", "set", self._cable, "down")

    def kill(self) -> None:
        """Kills all its processes with SIGKILL, as if its power had failed."""
        assert self._server.process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._server.process.pid, signal.SIGKILL)
        self._server.process.wait()


def _checked(code: int) -> None:
    if code:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
