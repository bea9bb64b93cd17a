"""DagsterAsset: reports to Dagster, for each complete period, that this partition of an asset is materialized."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from spark_rowtime.announce.http_call import Headers
from spark_rowtime.announce.http_client import HttpClient, require_url
from spark_rowtime.announce.period import Period
from spark_rowtime.announce.target import LOG, NotTakenError
from spark_rowtime.periods import Unit
from spark_rowtime.types.json_values import load
from spark_rowtime.types.timestamps import DAY_MICROS

DAY_KEY, HOUR_KEY = "%Y-%m-%d", "%Y-%m-%d-%H:%M"
"""The forms of partition keys that Dagster's partitions of days, weeks and months, and those of hours, have."""
_ASSET = (
    "query($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) { __typename "
    "... on AssetNode { partitionKeysByDimension(startIdx: 0, endIdx: 1) { partitionKeys } } } }"
)
"""Whether there is an asset, and the first key of its partitions."""


class DagsterAsset:
    """Reports materializations of an external asset (``POST /report_asset_materialization/``).

    The parts of the asset's key are separated by slashes. Dagster takes a report of any asset, so it is asked first
    whether it has this one. A server that does not answer such questions gets the reports all the same.
    """

    merges = False

    def __init__(self, url: str, asset: str, *, headers: Mapping[str, str], timeout: float) -> None:
        require_url(url, "to")
        self._base, self._asset, self._asked = url.rstrip("/"), asset, False
        self._headers = Headers(headers, names=())
        self._client = HttpClient(timeout, self._headers.secrets)

    @staticmethod
    def default_key(unit: Unit) -> str:
        """The form of Dagster's partition keys for periods of this length."""
        return DAY_KEY if unit.micros >= DAY_MICROS else HOUR_KEY

    def announce(self, period: Period, call: str) -> None:  # noqa: ARG002
        """Sends the report."""
        fields = period.fields()
        report = {
            "partition": period.key,
            "description": f"{period.stream} is complete up to {fields['end']}",
            "metadata": {name: fields[name] for name in ("start", "end", "stream", "every")},
        }
        if not self._asked:
            self._require_asset(period.key)
        self._send(f"/report_asset_materialization/{quote(self._asset)}", report)

    def _require_asset(self, key: str) -> None:
        """An asset that Dagster does not have may come when it loads its code again. Warns of a key it cannot have."""
        try:
            answer = load(self._send("/graphql", {"query": _ASSET, "variables": {"path": self._asset.split("/")}}))
            found = answer["data"]["assetNodeOrError"]
            if found["__typename"] == "AssetNotFoundError":
                raise NotTakenError(
                    f"Dagster has no asset {self._asset!r}. Assets come from code locations: one must define it, as an "
                    "AssetSpec or otherwise",
                    temporary=True,
                )
            first = [keys["partitionKeys"][:1] for keys in found["partitionKeysByDimension"]]
        except NotTakenError as error:
            if error.status is None:
                raise
            self._asked = not error.temporary
        except (LookupError, TypeError, ValueError):
            self._asked = True
        else:
            self._asked = True
            _warn_of_key(self._asset, key, first)

    def _send(self, path: str, content: Any) -> str:
        headers = {**self._headers.fill({}), "content-type": "application/json"}
        return self._client.send("POST", self._base + path, headers, json.dumps(content).encode())

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()


def _warn_of_key(asset: str, key: str, first: Sequence[Sequence[str]]) -> None:
    """Warns of a key that the asset cannot have. ``first``: the first key in each dimension of its partitions."""
    if not first:
        LOG.warning("Dagster's asset %r has no partitions, and %r is reported: no partition has it.", asset, key)
    elif len(first) == 1 and first[0] and not _has_form(key, str(first[0][0])):
        LOG.warning(
            "The partitions of Dagster's asset %r have keys such as %r, and %r is reported, which is none of them. "
            "Announce periods as long as the partitions, and give --key only for a definition with a form of its own.",
            asset,
            first[0][0],
            key,
        )


def _has_form(key: str, known: str) -> bool:
    """Whether the two differ in digits alone. A second hour of one name has its offset behind it."""
    form, other = (re.sub("[0-9]", "0", text) for text in (key, known))
    return form in (other, f"{other}+0000", f"{other}-0000")
