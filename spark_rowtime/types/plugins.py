"""Plugins: what installed packages add by entry points, such as a target of ``rowtime drain``."""

from typing import TYPE_CHECKING, Any

from spark_rowtime.errors import InvalidOptionError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def plugin_names(group: str) -> list[str]:
    """The names that packages have in a group, in order."""
    from importlib.metadata import entry_points  # noqa: PLC0415  (slow, and few commands ask for a plugin)

    return sorted({point.name for point in entry_points(group=group)})


def plugin(group: str, name: str) -> Any:
    """What packages call ``name`` in a group; None if there is no such name.

    Raises:
        InvalidOptionError: It cannot be imported, or two packages have the name for different things.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415  (as above)

    found = {point.value: point for point in entry_points(group=group, name=name)}
    if len(found) > 1:
        raise InvalidOptionError(
            f"{name!r} is several things, of which none can be chosen: {', '.join(sorted(found))} (entry points of the "
            f"group {group}). Uninstall one of the packages.",
            option=name,
        )
    return _loaded(*found.values()) if found else None


def _loaded(point: "EntryPoint") -> Any:
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise InvalidOptionError(
            f"{point.name!r} is {point.value} (an entry point of the group {point.group}), which cannot be imported: "
            f"{error}. Install the package again, or what it needs.",
            option=point.name,
            value=point.value,
        ) from error
