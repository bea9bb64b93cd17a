"""An S3 server of the tests' own: moto's, which speaks HTTP, in a process of its own."""

import atexit
import shutil
import signal
import sys
import tempfile
import urllib.request
from functools import cache
from pathlib import Path
from typing import Any

from tests.servers import END_SECONDS, KeptPort, ServerProcess

BUCKET = "rows"
KEY, SECRET = "rowtime-key", "rowtime-s3cret"


@cache
def port() -> KeptPort:
    """The port of the server, on every address; kept as long as this process lives, also before it is started."""
    kept = KeptPort()
    atexit.register(kept.close)
    return kept


def environment(address: str = "127.0.0.1") -> dict[str, str]:
    """What the users of the server need in their environment, also before it is started."""
    return {
        "AWS_ENDPOINT_URL": f"http://{address}:{port()}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


class S3Server:
    """A server with the bucket BUCKET. What it keeps is gone when it stops."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self._address, self.endpoint = address, environment(address)["AWS_ENDPOINT_URL"]
        self._folder = Path(tempfile.mkdtemp(prefix="rowtime-s3-"))
        self._server = ServerProcess("moto's server", self._folder / "log")
        self._start()

    @property
    def file_system(self) -> Any:
        """The server as a file system of pyarrow."""
        from pyarrow import fs

        how: dict[str, Any] = {"access_key": KEY, "secret_key": SECRET, "region": "us-east-1", "scheme": "http"}
        place = self.endpoint.removeprefix("http://")
        return fs.S3FileSystem(endpoint_override=place, allow_bucket_creation=True, **how)

    def _start(self) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", self._address, "-p", port()]
        self._server.start(command, self._answers)
        self.file_system.create_dir(BUCKET)

    def stop(self) -> None:
        """Ends the server."""
        self._server.end(signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.endpoint}/moto-api/", timeout=END_SECONDS):
                return True
        except OSError:
            return False
