"""An S3 server of the tests' own: moto's, which speaks HTTP, in a process of its own."""

import socket
import subprocess
import sys
import time
import urllib.request
from functools import cache
from typing import Any

START_SECONDS = 60.0
BUCKET = "rows"
KEY, SECRET = "rowtime-key", "rowtime-s3cret"


@cache
def environment() -> dict[str, str]:
    """What the users of the server need in their environment, also before it is started."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


class S3Server:
    """A server with the bucket BUCKET. What it keeps is gone when it stops."""

    def __init__(self, endpoint: str | None = None) -> None:
        self.endpoint = endpoint or environment()["AWS_ENDPOINT_URL"]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def file_system(self) -> Any:
        """The server as a file system of pyarrow."""
        from pyarrow import fs

        how: dict[str, Any] = {"access_key": KEY, "secret_key": SECRET, "region": "us-east-1", "scheme": "http"}
        return fs.S3FileSystem(endpoint_override=self._address, allow_bucket_creation=True, **how)

    def start(self) -> None:
        """Starts the server, and waits until it answers."""
        server = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "moto.server",
            "-H",
            self._address.split(":")[0],
            "-p",
            self._address.split(":")[1],
        ]
        self._process = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert time.monotonic() < deadline, "moto's server does not answer"
            assert self._process.poll() is None, "moto's server has ended"
        self.file_system.create_dir(BUCKET)

    def stop(self) -> None:
        """Ends the server."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def _address(self) -> str:
        return self.endpoint.removeprefix("http://")

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.endpoint}/moto-api/", timeout=5):
                return True
        except OSError:
            time.sleep(0.05)
            return False
