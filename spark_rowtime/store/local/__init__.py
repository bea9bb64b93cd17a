"""Streams in directories of the local file system: the embedded default store. FORMAT.md specifies the files."""

from spark_rowtime.store.local.copy import copy_local
from spark_rowtime.store.local.directory import check_local, create_local, list_local, open_local
from spark_rowtime.store.local.exclusive import delete_local, rename_local
from spark_rowtime.store.local.history import exported, import_local
from spark_rowtime.store.local.store import LocalStore

__all__ = [
    "LocalStore",
    "check_local",
    "copy_local",
    "create_local",
    "delete_local",
    "exported",
    "import_local",
    "list_local",
    "open_local",
    "rename_local",
]
