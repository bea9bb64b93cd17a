"""The file system of a location: a folder, or an object store, whose credentials are in the environment."""

import os
from functools import lru_cache
from urllib.parse import parse_qsl, urlparse

import pyarrow as pa
from pyarrow import fs

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
S3_TIMEOUT_SECONDS = 10
"""How long an object store may take to accept a connection, and to go on with an answer."""
S3_ATTEMPTS = 3
"""How many times a request is made. One that is never answered takes about a minute in all."""


@lru_cache(maxsize=16)
def _file_system(location: str, endpoint: str, process: int) -> tuple[fs.FileSystem, str]:  # noqa: ARG001
    """``process``: a forked child makes its own, as an object store's client has threads."""
    url = urlparse(location)
    if url.scheme == "file":
        return fs.LocalFileSystem(), url.path
    if url.scheme != "s3":
        made: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(location)
        return made
    options = dict(parse_qsl(url.query))
    if endpoint:
        given = urlparse(endpoint)
        options |= {"endpoint_override": given.netloc, "scheme": given.scheme}
    if not any(name in options for name in ("endpoint_override", "region")) and not _region():
        options["region"] = fs.resolve_s3_region(url.netloc)
    retries = fs.AwsStandardS3RetryStrategy(max_attempts=S3_ATTEMPTS)
    limits = {"connect_timeout": S3_TIMEOUT_SECONDS, "request_timeout": S3_TIMEOUT_SECONDS, "retry_strategy": retries}
    one_request = {"background_writes": False, "allow_delayed_open": True}
    return fs.S3FileSystem(**options, **limits, **one_request), f"{url.netloc}{url.path}"


def file_system(location: str) -> tuple[fs.FileSystem, str]:
    """Returns the file system of a location, and the path of the location in it. Raises OSError or ArrowException."""
    return _file_system(location, endpoint(), os.getpid())


def endpoint() -> str:
    """Returns the URL of the S3 server that the environment names; "" if it names none."""
    return next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), "")


def _region() -> str | None:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")


def shown_error(error: Exception) -> str:
    """Returns the first line of an error of a file system, without any secret of the environment."""
    text = str(error).partition("\n")[0].strip() or type(error).__name__
    for name in _SECRETS:
        if secret := os.environ.get(name):
            text = text.replace(secret, "...")
    return text


STORAGE_ERRORS = (OSError, pa.ArrowException)
"""What a file system of pyarrow raises."""
