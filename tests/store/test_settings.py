"""The settings of a stream that somebody has written who is no version of this project: damage, and no other error."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.store.local.seal import crc, seal
from spark_rowtime.store.settings import StreamSettings, settings_of, settings_text

STRANGE = [
    *("[]", "7", "null", '"x"', "{", "[" * 100_000, '{"maxAhead": "1"}', '{"maxAhead": -1}', '{"maxAhead": 1.5}'),
    *('{"maxAhead": true}', '{"boundsBeforeRows": 1}', '{"boundsBeforeRows": null}', '{"retainRejected": null}'),
    *('{"closed": 5}', '{"closed": "ab"}', '{"closed": [5]}', '{"location": 7}', '{"noSuch": 1}'),
]


@pytest.mark.parametrize("text", STRANGE, ids=lambda text: text[:30])
def test_strange_settings_are_damage(tmp_path: Path, text: str) -> None:
    path = str(tmp_path / "s")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    with closing(sqlite3.connect(Path(path, "catalog.db"))) as db:
        sealed = seal(("settings", crc(text)))
        db.execute("UPDATE meta SET value = ?, seal = ? WHERE name = 'settings'", (text, sealed))
        db.commit()
    for call in (rt.describeStream, rt.openReader, rt.openSink):
        with pytest.raises(rt.StoreCorruptError, match="is damaged"):
            call(path)


@pytest.mark.parametrize(
    "settings",
    [
        StreamSettings(),
        StreamSettings(False, 1, 2, 3, 4, 5, 6, "s3://bucket/x", ("a", "b")),
    ],
)
def test_settings_are_what_was_kept(settings: StreamSettings) -> None:
    """Also as versions have kept them that wrote what is not set as null."""
    assert settings_of(settings_text(settings)) == settings
    of_old = {**json.loads(settings_text(StreamSettings())), "maxAhead": None}
    assert settings_of(json.dumps(of_old)) == StreamSettings()
