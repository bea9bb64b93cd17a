"""Reads a CSV file as rows of a stream: its columns, their types, and the place of an error."""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from spark_rowtime.cli.csv_times import TimeFormat
from spark_rowtime.cli.csv_types import kept_types, require_finite, to_decimal, unsure
from spark_rowtime.errors import InvalidOptionError, RowtimeError, SchemaMismatchError
from spark_rowtime.types.added_columns import added_names
from spark_rowtime.types.exact_casts import floored
from spark_rowtime.types.local_time import LocalTime, is_naive
from spark_rowtime.types.schema import ROWTIME, TIMESTAMP, check_rowtimes, stream_schema
from spark_rowtime.types.short_repr import REPR_CHARACTERS, short_repr
from spark_rowtime.types.timestamps import to_micros

_BLOCK = 16 << 20
"""How many bytes are read at once. Types are inferred from the first block, and looked at in all (``csv_types``)."""
_SHORT = "^[^eE]{1,39}$"
"""Texts of numbers with a point that Arrow reads exactly, or refuses: see MOST_LOST_DIGITS."""
csv.field_size_limit(2 * _BLOCK)  # else 128 KB; Arrow reads no row that is in more than two blocks


@dataclass(frozen=True)
class CsvRows:
    """A CSV file with a header, whose column named by ``rowtime`` becomes the stream's rowtime.

    All columns keep their names. The rowtime column also stays under its own name, beside ``rowtime``.
    ``columns`` selects columns, in this order. ``nulls`` are the unquoted texts that stand for null.
    ``time_format`` is the strptime format of times that are not in ISO 8601. ``stream`` is the schema that
    the rows must have, if the stream exists already; columns that were added to it may be missing. ``local``
    interprets times without a zone; None means UTC. The methods raise SchemaMismatchError and
    InvalidOptionError, with the line if it is known.
    """

    file: Path
    rowtime: str
    columns: Sequence[str] = ()
    delimiter: str = ","
    nulls: Sequence[str] = ("",)
    time_format: str | None = None
    stream: pa.Schema | None = None
    local: LocalTime | None = None

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n':
            raise InvalidOptionError(
                f"--delimiter {self.delimiter!r}: it must be one ASCII character, such as ';', or '\\t' for a tab.",
                option="delimiter",
                value=self.delimiter,
            )
        if not self.file.is_file():
            raise InvalidOptionError(
                f"{self.file} is no file that can be read more than once. Write what it has to a file first.",
                option="csv",
                value=str(self.file),
            )

    @property
    def how(self) -> dict[str, object]:
        """The options by which the texts are read, apart from their defaults."""
        zone = None if self.local is None or str(self.local.zone) == "UTC" else str(self.local.zone)
        columns = [] if list(self.columns) == self._header else [*self.columns]
        given = {"columns": columns, "timeFormat": self.time_format, "tz": zone}
        more = {"delimiter": self.delimiter, "nulls": [*self.nulls]}
        defaults = {"delimiter": ",", "nulls": [""]}
        return {name: value for name, value in {**given, **more}.items() if value and value != defaults.get(name)}

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the stream."""
        kinds = {**self._inferred, **dict.fromkeys(self._by_format, TIMESTAMP)}
        named = [pa.field(name, _stream_type(kinds[name])) for name in self._kept if name != ROWTIME]
        own = stream_schema(pa.schema([pa.field(ROWTIME, TIMESTAMP), *named]))
        if self.stream is None:
            return own
        self._check_columns(own.names, self.stream)
        self._require_time(self.stream)
        return self.stream

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields all rows in the order of the file, with the schema ``schema`` and a valid rowtime each."""
        schema = self.schema
        with self._errors(), self._open(self._types) as reader:
            for batch in map(self._placed, map(self._timed, reader)):
                self._check(batch.column(self.rowtime))
                self._check_infinite(batch)
                yield self._project(batch, schema)

    def bad_line(self, column: str, fits: Callable[[str], object]) -> str | None:
        """Describes the first value of a column for which ``fits`` raises, and its line. None if there is none."""
        with self._lines() as lines:
            at = next(lines).index(column)
            for row in lines:
                value = row[at] if at < len(row) else ""
                try:
                    fits(value)
                except (ValueError, RowtimeError) as error:
                    return f"line {lines.begin} has {short_repr(value)} ({error})"
        return None

    def _require_quotes(self) -> None:
        """Refuses a quote that is not closed, or a text behind one that is: Arrow would take the next rows for text."""
        if not self._has_quotes():
            return
        with self._lines(strict=True) as lines:
            for _ in lines:
                pass

    def _has_quotes(self) -> bool:
        with self.file.open("rb") as file:
            return any(b'"' in block for block in iter(lambda: file.read(_BLOCK), b""))

    @contextmanager
    def _lines(self, *, strict: bool = False) -> Iterator["_Lines"]:
        """The file for Python's reader, which knows the lines. Its errors are raised as SchemaMismatchError."""
        with self.file.open(newline="", encoding="utf-8-sig", errors="replace") as text:
            lines = _Lines(csv.reader(text, delimiter=self.delimiter, strict=strict))
            try:
                yield lines
            except csv.Error as error:
                raise SchemaMismatchError(
                    f"{self.file}, line {lines.begin}: a quote is not closed, or text follows a closing quote "
                    f'({error}). Nothing was sent. Close the quote; write a quote within a quoted text twice (""). '
                    "Perhaps the file is not complete.",
                    file=str(self.file),
                ) from None

    @cached_property
    def _header(self) -> list[str]:
        with self._lines() as lines:
            names = next(lines, [])
        for name in (self.rowtime, *self.columns):
            if name not in names:
                raise InvalidOptionError(f"{self.file} has no column {name!r}, only {names}.", column=name)
        if len(set(names)) != len(names):
            raise SchemaMismatchError(f"{self.file} has two columns with the same name: {names}. Rename one of them.")
        return names

    @cached_property
    def _kept(self) -> list[str]:
        kept = list(self.columns or self._header)
        clash = [name for name in kept if name.lower() == ROWTIME and name != self.rowtime]
        if clash:
            more = f"Give --rowtime {ROWTIME}, rename" if clash[0] == ROWTIME else "Rename"
            raise SchemaMismatchError(
                f"{self.file} has a column {clash[0]!r}, but rowtime comes from {self.rowtime!r}. {more} the column, "
                "or leave it out: list the other columns with --columns.",
                column=clash[0],
            )
        return kept

    @cached_property
    def _inferred(self) -> dict[str, pa.DataType]:
        """The inferred types of all columns that are read, by name; if the stream is new, those that keep each text."""
        self._require_quotes()
        with self._errors(), self._open({}) as reader:
            types = {field.name: field.type for field in reader.schema}
        if self.stream is None:
            self._require_texts(types)
        if self.stream is not None or not (looked_at := unsure(types, self.rowtime)):
            return types
        with self._errors(), self._open(dict.fromkeys(looked_at, pa.string()), looked_at) as texts:
            return kept_types(types, texts, self.rowtime)

    @cached_property
    def _types(self) -> dict[str, pa.DataType]:
        """The type with which each column is read."""
        types = {name: _read_type(kind) for name, kind in self._inferred.items()}
        for field in self.stream or ():
            if field.name in types and not self._is_read_as_time(field, types[field.name]):
                types[field.name] = pa.string() if pa.types.is_decimal(field.type) else field.type
        types |= dict.fromkeys(self._by_format, pa.string())
        kind = self._inferred[self.rowtime]
        if not pa.types.is_timestamp(kind) and self._format is None:
            if not (pa.types.is_date(kind) or pa.types.is_null(kind)):
                raise self._bad_rowtime(f"its values are {kind}")
            types[self.rowtime] = pa.timestamp("us")
        return types

    @cached_property
    def _format(self) -> TimeFormat | None:
        return None if self.time_format is None else TimeFormat(self.time_format)

    @cached_property
    def _by_format(self) -> list[str]:
        """The columns that are read as texts, and whose times are then read by the format."""
        if self._format is None:
            return []
        in_stream = {field.name: field.type for field in self.stream or ()}
        kinds = {name: in_stream.get(name, kind) for name, kind in self._inferred.items()}
        return [name for name, kind in kinds.items() if name == self.rowtime or pa.types.is_timestamp(kind)]

    def _require_time(self, stream: pa.Schema) -> None:
        """Refuses to write the time that the format says into a column of numbers, of which it is made."""
        kind = stream.field(self.rowtime).type if self.rowtime in stream.names else TIMESTAMP
        if self._format and not (pa.types.is_temporal(kind) or pa.types.is_string(kind)):
            raise SchemaMismatchError(
                f"{self.file}: column {self.rowtime!r} is {kind} in the stream, and with --time-format a time. List "
                "the other columns with --columns.",
                file=str(self.file),
                column=self.rowtime,
            )

    def _require_texts(self, types: dict[str, pa.DataType]) -> None:
        """Refuses a file that is not in UTF-8, whose texts Arrow takes for bytes."""
        for name, kind in types.items():
            if pa.types.is_binary(kind):
                raise SchemaMismatchError(
                    f"{self.file}: column {name!r}: {self.bad_line(name, _utf8) or 'it is not in UTF-8'}. Nothing was "
                    "sent. Convert the file: iconv -f WINDOWS-1252 -t UTF-8, or whatever it is in.",
                    file=str(self.file),
                    column=name,
                )

    def _is_read_as_time(self, field: pa.Field, inferred: pa.DataType) -> bool:
        """Whether a column of the stream is read as the time that it is inferred to be, and then cast."""
        is_time: bool = pa.types.is_timestamp(inferred)
        return is_time and (field.name == self.rowtime or pa.types.is_timestamp(field.type))

    def _open(self, types: dict[str, pa.DataType], columns: Sequence[str] = ()) -> pa_csv.CSVStreamingReader:
        wanted = columns or (self._kept if self.rowtime in self._kept else [*self._kept, self.rowtime])
        formats = [self.time_format] if self.time_format else []
        return pa_csv.open_csv(
            self.file,
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types=types,
                include_columns=list(wanted),
                null_values=list(self.nulls),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                timestamp_parsers=[*formats, pa_csv.ISO8601],
            ),
        )

    def _project(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        source = {name: batch.column(name) for name in self._kept}
        source[ROWTIME] = batch.column(self.rowtime)
        source |= {f.name: pa.nulls(batch.num_rows, f.type) for f in schema if f.name not in source}  # added columns
        columns = [self._converted(source[f.name], f) for f in schema]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _converted(self, column: pa.Array, field: pa.Field) -> pa.Array:
        """The column with the type of the field. A DECIMAL comes as a text: Arrow's CSV reader crashes on some."""
        if not (pa.types.is_decimal(field.type) and pa.types.is_string(column.type)):
            return _cast(column, field.type)
        texts = pc.utf8_trim_whitespace(column)
        try:
            if pc.all(pc.match_substring_regex(texts, _SHORT)).as_py() is not False:
                return texts.cast(field.type)
            numbers = [None if text is None else to_decimal(text, field.type)[0].as_py() for text in texts.to_pylist()]
            return pa.array(numbers, field.type)
        except ValueError as error:
            line = self._bad_number(field, lambda text: to_decimal(text.strip(), field.type))
            raise self._no_number(field, line or str(error)) from None

    def _timed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Reads the texts of times by the format."""
        for name in self._by_format:
            assert self._format is not None
            try:
                times = self._format.column(batch.column(name))
            except InvalidOptionError as error:
                raise self._bad_time(name, str(error)) from None
            batch = batch.set_column(batch.schema.get_field_index(name), name, times)
        return batch

    def _bad_time(self, name: str, why: str) -> SchemaMismatchError:
        if name == self.rowtime:
            return self._bad_rowtime("it has a time that cannot be read")
        return SchemaMismatchError(
            f"{self.file}: column {name!r}: {self.bad_line(name, self._readable) or why}. Nothing was sent. Correct "
            "the time, or make the stream with a STRING there.",
            file=str(self.file),
            column=name,
        )

    def _readable(self, text: str) -> None:
        if text not in self.nulls:
            self._time(text)

    def _placed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Converts times without a zone with ``local``, except for columns that have no zone in the stream either."""
        if self.local is None:
            return batch
        for at, field in enumerate(batch.schema):
            has_none = self.stream is not None and field.name in self.stream.names and field.name != self.rowtime
            if not is_naive(field.type) or (has_none and is_naive(self.stream.field(field.name).type)):  # type: ignore[union-attr]
                continue
            try:
                batch = batch.set_column(at, field.name, self.local.column(batch.column(at)))
            except pa.ArrowInvalid as error:
                why = self.bad_line(field.name, self._placeable) or " ".join(str(error).split())
                raise SchemaMismatchError(
                    f"{self.file}: column {field.name!r}: {why}. Nothing was sent. Write such times "
                    "with their offset from UTC.",
                    file=str(self.file),
                    column=field.name,
                ) from None
        return batch

    def _placeable(self, text: str) -> None:
        assert self.local is not None
        if text not in self.nulls:
            self.local.aware(self._time(text))

    def _check(self, times: pa.Array) -> None:
        if times.null_count:
            raise self._bad_rowtime("it is empty in some rows")
        try:
            check_rowtimes(_cast(times, TIMESTAMP))
        except SchemaMismatchError as error:
            raise self._bad_rowtime(str(error)) from None

    def _check_infinite(self, batch: pa.RecordBatch) -> None:
        """Looks at the texts of a column that has infinite numbers, once in the file: some say a finite one."""
        for field in batch.schema:
            if not pa.types.is_floating(field.type) or field.name in self._checked_columns:
                continue
            if pc.any(pc.is_inf(batch.column(field.name))).as_py():
                self._checked_columns.add(field.name)
                self._require_finite(field)

    @cached_property
    def _checked_columns(self) -> set[str]:
        return set()

    def _require_finite(self, field: pa.Field) -> None:
        if line := self._bad_number(field, lambda text: require_finite(field.type, text)):
            raise self._no_number(field, line)

    def _bad_number(self, field: pa.Field, read: Callable[[str], object]) -> str | None:
        return self.bad_line(field.name, lambda text: text in self.nulls or read(text))

    def _no_number(self, field: pa.Field, why: str) -> SchemaMismatchError:
        return SchemaMismatchError(
            f"{self.file}: column {field.name!r}: {why}. Nothing was sent. Correct the number, or send to a "
            "stream whose column is wider.",
            file=str(self.file),
            column=field.name,
        )

    def _check_columns(self, have: list[str], stream: pa.Schema) -> None:
        missing = sorted(set(stream.names) - set(have) - set(added_names(stream)))
        more = sorted(set(have) - set(stream.names))
        if missing or more:
            which = [f"missing {missing}"] * bool(missing) + [f"unknown {more}"] * bool(more)
            kept = ",".join(name for name in self.columns or self._header if name not in more)
            advice = "Send a file, and --columns, with all of its columns" if missing else f"Add --columns {kept}"
            raise SchemaMismatchError(
                f"{self.file} does not fit the stream: {', '.join(which)}. (Rowtime comes from {self.rowtime!r}.) "
                f"{advice}, or send to another stream.",
                missing=missing,
                unknown=more,
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, UnicodeError) as error:
            line = self.bad_line(self.rowtime, self._parse) if "conversion error" in str(error) else None
            what = f"column {self.rowtime!r}, {line}" if line else str(error)[:REPR_CHARACTERS]
            inferred = (
                f" Types are inferred from the first {_BLOCK >> 20} MB; an existing stream determines them itself."
            )
            raise SchemaMismatchError(
                f"{self.file} cannot be read: {what}.{inferred if self.stream is None else ''}",
                file=str(self.file),
            ) from None

    def _bad_rowtime(self, why: str) -> SchemaMismatchError:
        line = self.bad_line(self.rowtime, self._parse) or "some times may have a zone and others none"
        return SchemaMismatchError(
            f"{self.file}: column {self.rowtime!r} cannot be the rowtime: {why}; {line}. Nothing was sent. Each row "
            "needs a time later than 1970-01-01T00:00:00Z, in ISO 8601 or as --time-format says.",
            file=str(self.file),
            column=self.rowtime,
        )

    def _parse(self, text: str) -> None:
        to_micros(self._time(text))

    def _time(self, text: str) -> datetime | str:
        return text if self._format is None else self._format.parse(text)


class _Lines:
    """The rows of Python's reader of a file; ``begin`` is the line in which the row that was asked for last begins."""

    def __init__(self, reader: Any) -> None:
        self._reader, self.begin = reader, 1

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> list[str]:
        self.begin = self._reader.line_num + 1
        row: list[str] = next(self._reader)
        return row


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Casts a column; times are cut to microseconds, towards the past."""
    if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(kind) and column.type.unit == "ns":
        column = floored(column).cast(pa.timestamp("us", column.type.tz))
    return column.cast(kind)


def _utf8(text: str) -> None:
    if "\ufffd" in text:
        raise ValueError("it is not in UTF-8")


def _read_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type to read a column with. Later blocks may have fractions of seconds, even if the first has not."""
    if pa.types.is_timestamp(kind) and kind.unit == "s":
        return pa.timestamp("us", kind.tz)
    return pa.string() if pa.types.is_null(kind) or pa.types.is_time(kind) else kind


def _stream_type(kind: pa.DataType) -> pa.DataType:
    return TIMESTAMP if pa.types.is_timestamp(kind) else _read_type(kind)
