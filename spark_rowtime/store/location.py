"""Locations: URLs of folders, or of buckets of object stores, in which streams of a database keep large trains."""

from typing import Any
from urllib.parse import ParseResult, parse_qsl, urlparse

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.short_repr import short_repr

_OPTIONS: dict[str, tuple[str, ...]] = {
    "file": (), "s3": ("region", "scheme", "endpoint_override"), "gs": ("scheme", "endpoint_override"),
    "abfs": (), "abfss": (), "hdfs": ("user",),
}  # fmt: skip
"""The schemes of a location, each with the options that may follow ``?``. None of them is a secret."""
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
    if not url.path.isprintable() or any(part in url.path for part in ("%", "//")):
        raise _wrong(short_repr(value), "has a path with '%', '//' or a control character")
    return url._replace(path=url.path.rstrip("/")).geturl()


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
            "configuration files or the roles of the machines.",
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
