"""Locations: URLs of folders, or of buckets of object stores, in which streams of a database keep large trains.

Law (*no stranger's server*): a location that is stored names a bucket, an account or a folder. Which server gets the
requests, signed with the credentials of this process, its environment says, and nothing that is stored. An ``hdfs://``
location has to name its server.
"""

import re
from typing import Any
from urllib.parse import ParseResult, parse_qsl, urlencode, urlparse

from spark_rowtime.errors import InvalidOptionError, StoreCorruptError, StoreUnavailableError
from spark_rowtime.types.short_repr import short_repr

_OPTIONS: dict[str, tuple[str, ...]] = {
    "file": (), "s3": ("region",), "gs": (), "abfs": (), "abfss": (), "hdfs": ("user",),
}  # fmt: skip
"""The schemes of a location, each with the options that may follow ``?``: none is a secret, and none names a server."""
_ONCE_ALLOWED = ("endpoint_override", "scheme")
"""Options that name a server, which locations of earlier versions may have."""
_BUCKET = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_AZURE = r"([a-z0-9-]+@)?([a-z0-9-]+|[a-z0-9]+\.(dfs|blob)\.core\.(windows\.net|chinacloudapi\.cn|usgovcloudapi\.net))"
_PLACES = {"s3": _BUCKET, "gs": _BUCKET, "abfs": _AZURE, "abfss": _AZURE, "hdfs": r"[A-Za-z0-9._-]+(:\d+)?"}
"""What may stand for the bucket, the account or the server."""
_REGION = re.compile(r"[a-z0-9-]*")
_HADOOP_SCHEMES = {"s3": "s3a"}
"""The schemes that Hadoop's file systems have under another name."""
_EXAMPLES = "'s3://bucket/rowtime', or 'file:///mnt/shared/rowtime' for a folder that all machines share"


def to_location(value: Any) -> str:
    """Returns the URL of a location in its normal form. Raises InvalidOptionError, which repeats no secret."""
    if not isinstance(value, str) or not value:
        raise _wrong(short_repr(value), "is no URL")
    text = f"file://{value}" if value.startswith("/") else value
    url = urlparse(text)
    shown = f"{url.scheme}://..." if url.scheme else "..."
    if url.scheme not in _OPTIONS:
        raise _wrong(shown if "@" in text or "?" in text else short_repr(value), _unknown(url.scheme))
    _require_no_secret(url, shown)
    if url.scheme == "file" and (url.netloc or not url.path.startswith("/")):
        raise _wrong(short_repr(value), "is no absolute path of a folder")
    if url.scheme != "file" and not url.netloc:
        raise _wrong(short_repr(value), "names no bucket")
    if url.scheme != "file" and not re.fullmatch(_PLACES[url.scheme], url.netloc):
        raise _wrong(short_repr(value), f"has {url.netloc!r} where a bucket or an account has its name")
    if not all(_REGION.fullmatch(region) for name, region in parse_qsl(url.query) if name == "region"):
        raise _wrong(short_repr(value), "has a region that is none")
    if not url.path.isprintable() or any(part in url.path for part in ("%", "//")):
        raise _wrong(short_repr(value), "has a path with '%', '//' or a control character")
    return url._replace(path=url.path.rstrip("/")).geturl()


def usable_location(stored: str, path: str, endpoint: str) -> str:
    """Returns the location that is stored of the stream at ``path``, as this process may use it.

    ``endpoint`` is the URL of the server in the environment of this process. Raises StoreCorruptError if it is no
    location, StoreUnavailableError if it is one of an earlier version that names another server.
    """
    try:
        location, server = _apart(stored)
        if to_location(location) != location:
            raise _wrong(short_repr(stored), "is not in its normal form")
    except (InvalidOptionError, ValueError, AttributeError) as error:
        raise StoreCorruptError(f"The stored location of {path} is not valid: {error}", path=path) from None
    if server and server.get("endpoint_override") != urlparse(endpoint).netloc:
        raise StoreUnavailableError(
            f"The location of {path} names a server: {server}. What is stored does not say any more which server gets "
            "signed requests. If you trust this one, name it in the environment, AWS_ENDPOINT_URL=http://HOST:PORT.",
            path=path,
        )
    return location


def _apart(stored: str) -> tuple[str, dict[str, str]]:
    """Returns the location without the options that name a server, and these."""
    url = urlparse(stored)
    options = parse_qsl(url.query, keep_blank_values=True)
    server = {name: value for name, value in options if name in _ONCE_ALLOWED}
    others = urlencode([option for option in options if option[0] not in _ONCE_ALLOWED])
    return (url._replace(query=others).geturl() if server else stored), server


def _unknown(scheme: str) -> str:
    known = ", ".join(f"{name}://" for name in _OPTIONS)
    return f"has the scheme {scheme!r}, not one of {known}" if scheme else "is no URL and no absolute path"


def _wrong(shown: str, what: str) -> InvalidOptionError:
    return InvalidOptionError(f"location={shown} {what}. Write {_EXAMPLES}.", option="location", value=shown)


def _require_no_secret(url: ParseResult, shown: str) -> None:
    user, at, _ = url.netloc.rpartition("@")
    others = [name for name, _ in parse_qsl(url.query, keep_blank_values=True) if name not in _OPTIONS[url.scheme]]
    if (at and (url.scheme not in ("abfs", "abfss") or ":" in user)) or others or url.fragment or url.params:
        allowed = ", ".join(_OPTIONS[url.scheme]) or "none"
        raise InvalidOptionError(
            f"location={shown} has a user, a key, or an option that is not allowed; allowed are: {allowed}. A location "
            "is stored in the database and shown in descriptions, so it must not have secrets. Set the environment "
            "variables of the object store, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use its "
            "configuration files or the roles of the machines. AWS_ENDPOINT_URL names another server of S3.",
            option="location",
            value=shown,
        )


def without_options(location: str) -> str:
    """Returns the URL without what follows ``?``: the beginning of the URLs of objects."""
    return urlparse(location)._replace(query="").geturl()


def for_hadoop(location: str) -> str:
    """Returns the URL of the location in Hadoop, without options."""
    url = urlparse(without_options(location))
    return url._replace(scheme=_HADOOP_SCHEMES.get(url.scheme, url.scheme)).geturl()
