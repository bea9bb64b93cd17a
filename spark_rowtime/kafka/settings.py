"""The settings of Kafka's client: from a properties file and from ``--set``, and what is secret."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.hidden import hide
from spark_rowtime.types.short_repr import short_repr

_SECRET_WORDS = ("password", "secret", "key.pem", "oauthbearer.config", "jaas", "token", "passphrase", "user.info")
"""Parts of the names of settings whose values are secret."""
_OF_CONNECTIONS = (
    *("security.", "sasl.", "ssl.", "socket.", "client.", "broker.", "reconnect.", "retry.", "api.", "connections."),
    *("bootstrap.servers", "error_cb", "oauth_cb", "receive.message", "plugin.", "log.", "allow.auto"),
    *("enable.ssl", "enable.sasl", "oauth", "https.", "resolve.", "debug", "log_level", "metadata.", "topic.metadata"),
)
"""How the names of settings begin that each client has, whether it produces or not."""
_FROM_ENVIRONMENT = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def settings_in_file(path: str) -> dict[str, str]:
    """Reads a properties file: lines of the form name=value, and comments after #. No error shows a value."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOptionError(
            f"The file {path} with the settings of Kafka's client cannot be read: {error}", option="config", value=path
        ) from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        name, equals, value = (part.strip() for part in line.partition("="))
        if not line.strip() or name.startswith("#"):
            continue
        if not equals or not name or name in found:
            what = "gives a setting twice" if name in found else "is not of the form name=value"
            raise InvalidOptionError(
                f"Line {number} of {path} {what}. (It is not shown: it may be secret.)", option="config", value=path
            )
        found[name] = value
    return found


def require_no_secrets(names_and_values: Mapping[str, str]) -> None:
    """Raises InvalidOptionError for a secret that was given as an argument of a process."""
    for name, value in names_and_values.items():
        if is_secret(name) and not _FROM_ENVIRONMENT.fullmatch(value):
            raise InvalidOptionError(
                f"The value of {name} is a secret, which other users of the machine can see among the arguments of a "
                f"process. Write it into the file of --config; or set an environment variable, and write --set "
                f"'{name}={{env:NAME}}'.",
                option="--set",
            )
        if _has_user(value):
            raise InvalidOptionError(
                f"The URL in {name} has a user or a password before '@', which other users of the machine see among "
                "the arguments of a process. Give it without them; those of the schema registry are "
                "'registry.basic.auth.user.info={env:NAME}'. (The value is not shown.)",
                option="--set",
            )


def _has_user(value: str) -> bool:
    """Whether a URL, also one of several, names a user, except by variables. A password may have any characters."""
    user, at, _ = _FROM_ENVIRONMENT.sub("", value).partition("://")[2].rpartition("@")
    return bool(at and user.strip(":"))


def of_connections(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that clients of each kind have."""
    return {name: value for name, value in settings.items() if name.startswith(_OF_CONNECTIONS)}


def is_secret(name: str) -> bool:
    """Whether the value of a setting of this name is secret."""
    return any(word in name.lower() for word in _SECRET_WORDS)


def redacted(text: str, settings: Mapping[str, Any]) -> str:
    """The text without the values of secret settings."""
    return hide(text, (value for name, value in settings.items() if is_secret(name) and isinstance(value, str)))


def variables(text: str) -> list[str]:
    """Returns the names of the environment variables that a text stands for."""
    return _FROM_ENVIRONMENT.findall(text)


def filled(value: Any, name: str) -> Any:
    """The value of a setting; ``{env:NAME}`` in a text stands for an environment variable."""
    if not isinstance(value, str):
        return value

    def variable(found: re.Match[str]) -> str:
        text = os.environ.get(found[1])
        if text is None:
            raise InvalidOptionError(
                f"The setting {name!r} names the environment variable {short_repr(found[1])}, which is not set.",
                option=name,
            )
        return text

    return _FROM_ENVIRONMENT.sub(variable, value)
