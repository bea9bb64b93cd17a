"""DagsterAsset: reports to Dagster, for each complete period, that this partition of an asset is materialized."""

import json
from collections.abc import Mapping
from urllib.parse import quote

from spark_rowtime.announce.http_call import Headers
from spark_rowtime.announce.http_client import HttpClient, require_url
from spark_rowtime.announce.period import Period
from spark_rowtime.periods import Unit
from spark_rowtime.types.timestamps import DAY_MICROS

DAY_KEY, HOUR_KEY = "%Y-%m-%d", "%Y-%m-%d-%H:%M"
"""The forms of partition keys that Dagster's partitions of days, weeks and months, and those of hours, have."""


class DagsterAsset:
    """Reports materializations of an external asset (``POST /report_asset_materialization/``).

    The parts of the asset's key are separated by slashes.
    """

    merges = False

    def __init__(self, url: str, asset: str, *, headers: Mapping[str, str], timeout: float) -> None:
        require_url(url, "to")
        self._url = f"{url.rstrip('/')}/report_asset_materialization/{quote(asset)}"
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
        headers = {**self._headers.fill({}), "content-type": "application/json"}
        self._client.send("POST", self._url, headers, json.dumps(report).encode())

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()
