"""Every error that spark-rowtime raises, in one tree.

    RowtimeError
    +-- LateRowError            a row below the bound in force
    +-- BoundRegressionError    a bound set backwards
    +-- RowtimeAheadError       a bound too far ahead of the clock
    +-- CutRegressionError      a cut of a Kafka topic set backwards
    +-- SchemaMismatchError     rows, schema or rowtime of the wrong form
    +-- StreamNotFoundError     nothing at that path
    +-- StreamExistsError       something is there already
    +-- StreamCompleteError     the producer, or the whole stream, was declared complete
    +-- StreamBusyError         a stream is in use and cannot be renamed or deleted
    +-- SinkClosedError         a call on a closed sink
    +-- ProcessForkedError      a stream was in use while the process was forked; the child cannot open it
    +-- NotSerializableError    a sink or a reader that is to be pickled
    +-- ProducerFencedError     another process took this producer over, or closed it
    +-- StoreCorruptError       the bytes on disk are not those that were written
    +-- StoreUnavailableError   locked, full or unreachable for now
    +-- DataLostError           rows that a position still needs were removed
    +-- StreamSetBackError      another sink has this producer, in an older copy; it is a ProducerFencedError, too
    +-- UnknownOptionError      no such option; the message names the nearest
    +-- InvalidOptionError      an option's value cannot be used
    +-- KafkaUnavailableError   no broker can be reached, or it refuses this client
    +-- KafkaTopicError         a topic is missing, or was deleted and recreated
    +-- MessageDecodeError      a message of a topic is not a row
    +-- MessageNotReadyError    a message of a topic cannot be decoded just now
    +-- AnnouncementError       a scheduler has not taken an announcement
    +-- DisorderedOutputError   a row is below the bound that a query or a drain published
    +-- ShimMissingError        Spark runs without the extension
    +-- ShimMismatchError       Spark's internals are not as the extension expects
    +-- ExtraNotInstalledError  a pip extra is needed
    +-- WaitTimeoutError        what was flushed has not arrived in time

There are two warnings besides: SinkNotClosedWarning, for a sink that was not closed, and
ReaderNotRegisteredWarning, for readers of a user who may only read.

Each message states what happened, with the values, and what to do about it.
Each error can be pickled, so that it crosses Spark's process boundaries with all its values.
"""

import re
from typing import Any

TEXT_CHARACTERS = 8000
"""The most characters of the text of an error. A value in it may be long, as a message of a database or of a library
that quotes data; what to do is at the end."""
_END_CHARACTERS = 1000
_COLON = "(?::|%3[Aa])"
_PASSWORD = re.compile(
    rf"(://[^\s/@:]*?{_COLON})[^\s/]*(?=@)"
    r"|([?&#](?i:sig|[\w-]{0,30}(?:password|secret|token|signature|credential)[\w-]{0,30})=)[^\s&'\"]*"
    rf"|([?&#]\w+=[^\s&@:]*?{_COLON})[^\s&]*(?=@|%40)"
)
"""A password or a signature in an address, wherever a text repeats it. No part of this project takes one there."""


def without_passwords(text: str) -> str:
    """The text without the passwords of the addresses in it.

    >>> without_passwords("postgresql://me:secret@db/shop is in another kind of store")
    'postgresql://me:***@db/shop is in another kind of store'
    """
    return _PASSWORD.sub(r"\1\2\3***", text) if "://" in text else text


def cut(text: str) -> str:
    """The text of an error, without its middle if it is long."""
    if len(text) <= TEXT_CHARACTERS:
        return text
    beginning = text[: TEXT_CHARACTERS - _END_CHARACTERS - 100]
    return f"{beginning} ... ({len(text)} characters) ... {text[-_END_CHARACTERS:]}"


def _text(text: str) -> str:
    return cut(without_passwords(text))


class RowtimeError(Exception):
    """The base class of all errors of spark-rowtime.

    Args:
        message: The text of the error.
        values: The values that the message mentions, by name.

    Attributes:
        values: The same values, as a dict.

    Example:
        >>> import spark_rowtime as rt
        >>> try:
        ...     rt.openReader("memory://docs-missing")
        ... except rt.RowtimeError as error:
        ...     error.values
        {'path': 'memory://docs-missing'}
    """

    def __init__(self, message: str, **values: Any) -> None:
        super().__init__(_text(message))
        self.values: dict[str, Any] = {
            name: _text(value) if isinstance(value, str) else value for name, value in values.items()
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self.values)


def _rebuild(kind: type[RowtimeError], message: str, values: dict[str, Any]) -> RowtimeError:
    return kind(message, **values)


def not_serializable(kind: str, path: str) -> "NotSerializableError":
    """The error for a ``kind`` ("sink" or "reader") of the stream at ``path`` that is to be pickled or copied."""
    instead = 'df.writeStream.format("rowtime")' if kind == "sink" else 'spark.readStream.format("rowtime")'
    return NotSerializableError(
        f"A {kind} of {path} cannot be pickled: it belongs to the process that opened it. If a function that runs "
        f"elsewhere uses it, such as a UDF, open one within the function; or use {instead}.",
        kind=kind,
        path=path,
    )


class LateRowError(RowtimeError):
    """A row lies below the bound in force, or too far ahead of the wall clock. It was recorded as rejected.

    Sinks raise it under ``onLate="raise"``.

    ``values``:

    - ``producer``: the name of the producer.
    - ``rows``: the number of rejected rows.
    - ``bound``: the limit that the first of them fell below or exceeded, in microseconds since the epoch; None for the
      lateness of a column of whole numbers.
    - ``boundOf``: whose bound it was: "producer" if this producer promised it, by a bound, by rows in order or by its
      declared lateness; "stream" if it is the stream's bound, at which a producer that joins starts; None for rows too
      far ahead.
    - ``boundBy``: the producer whose event raised the stream's bound to it; for "producer", the producer itself. None
      if retention may have removed the event.
    - ``boundEvent``: that event ("sent", "left", "detached", "idled"); None for "producer", and if retention may have
      removed it.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-late", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> sink = rt.openSink("memory://docs-late", producer="nyse")
        >>> sink.sendRowtimeBound("2026-01-05T15:00:00Z")
        >>> sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.LateRowError: 1 late row(s) of producer 'nyse' at 2026-01-05T14:30:00Z, below the bound ...
        >>> sink.close()
    """


class BoundRegressionError(RowtimeError):
    """A bound is weaker than what this sink itself has promised, or implied by rows that it sent in order.

    ``values``:

    - ``bound``: the refused RowtimeBound.
    - ``said``: the floor that was promised, in microseconds since the epoch.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-regression", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> sink = rt.openSink("memory://docs-regression", producer="nyse")
        >>> sink.sendRowtimeBound("2026-01-05T15:00:00Z")
        >>> sink.sendRowtimeBound("2026-01-05T14:00:00Z")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.BoundRegressionError: The bound 'every later row is at or after ...' is weaker ...
        >>> sink.close()
    """


class RowtimeAheadError(RowtimeError):
    """A bound, or a row of a query's batch, lies further ahead of the clock than the stream's ``maxAhead``.

    Nothing of the call has landed. The clock is that of the store at the commit: the database's, or this machine's. A
    sink refuses a bound by its own machine's clock at once. A row of a sink that lies too far ahead is rejected.

    ``values``:

    - ``path``: the path of the stream.
    - ``producer``: the name of the producer.
    - ``rowtime``: the bound, or the rowtime of the row, in microseconds since the epoch.
    - ``ceiling``: the largest that was allowed, in microseconds since the epoch.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-ahead", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-ahead", producer="nyse") as sink:
        ...     sink.sendRowtimeBound("9999-01-05T15:00:00Z")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.RowtimeAheadError: The bound 9999-01-05T15:00:00Z of producer 'nyse' lies ...
    """


class CutRegressionError(RowtimeError):
    """A cut lies below an earlier cut of the same producer in some partition of a Kafka topic.

    ``values``:

    - ``producer``: the name of the producer.
    - ``topic``: the name of the topic.
    - ``partition``: the number of the partition.
    - ``offset``: the refused offset.
    - ``said``: the offset of the earlier cut.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-cutregression", "rowtime TIMESTAMP NOT NULL")
        >>> sink = rt.openSink("memory://docs-cutregression", producer="nyse")
        >>> sink.sendRowtimeBound("2026-01-05T15:00:00Z", cut={"orders": {0: 4711}})
        >>> sink.sendRowtimeBound("2026-01-05T16:00:00Z", cut={"orders": {0: 4690}})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.CutRegressionError: The cut of producer 'nyse' goes back: orders[0] is at 4690, but ...
        >>> sink.close()
    """


class SchemaMismatchError(RowtimeError):
    """A row, a schema or a rowtime does not fit the stream.

    ``values`` has those of these that the message is about:

    - ``row``: the index of the row in the call.
    - ``column``: the name of the column.
    - ``columns``: the names of several columns.
    - ``value``: the value, as text.
    - ``type``: the type of the column.
    - ``missing``: the names of columns that are missing.
    - ``unknown``: the names that are no columns.
    - ``wanted``: the columns that were expected.
    - ``given``: the columns that were given.
    - ``schema``: the whole schema, as it was given.
    - ``file``: the path of the CSV file.
    - ``path``: the path of the stream.
    - ``topic``: the name of the topic of Kafka.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-mismatch", "ticker STRING")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.SchemaMismatchError: A stream needs a column 'rowtime TIMESTAMP NOT NULL', but ...
    """


class StreamNotFoundError(RowtimeError):
    """There is no stream at that path.

    ``values``:

    - ``path``: the path.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.describeStream("memory://docs-nowhere")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.StreamNotFoundError: There is no stream at memory://docs-nowhere in this process, ...
    """


class StreamExistsError(RowtimeError):
    """There is a stream, or something else, at that path already.

    ``values``:

    - ``path``: the path.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-exists", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> rt.createStream("memory://docs-exists", "rowtime TIMESTAMP NOT NULL, ticker STRING")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.StreamExistsError: There is a stream at memory://docs-exists already. ...
    """


class StreamCompleteError(RowtimeError):
    """The producer, or every producer of the stream, was declared complete, so that no row may follow.

    ``values``:

    - ``path``: the path of the stream.
    - ``producer``: the name of the producer that was opened.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-complete", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> rt.openSink("memory://docs-complete", producer="nyse").close(complete=True)
        >>> rt.openSink("memory://docs-complete", producer="nyse")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.StreamCompleteError: Producer 'nyse' of memory://docs-complete is complete: ...
    """


class StreamBusyError(RowtimeError):
    """A stream is in use, or still needed, and so was not renamed or deleted. The message says by whom.

    ``values``:

    - ``path``: the path of the stream.
    - ``users``: who uses it, each as a text.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-busy", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> sink = rt.openSink("memory://docs-busy", producer="nyse")
        >>> rt.deleteStream("memory://docs-busy")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.StreamBusyError: memory://docs-busy is still used: producer 'nyse' is attached. ...
        >>> sink.close()
        >>> rt.deleteStream("memory://docs-busy")
    """


class SinkClosedError(RowtimeError):
    """The sink was closed, a call of it was interrupted, or its process was forked.

    ``values`` has those of these that the message is about:

    - ``producer``: the name of the producer.
    - ``path``: the path of the stream, where the stream was opened in another process, or the table.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-closed", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> sink = rt.openSink("memory://docs-closed", producer="nyse")
        >>> sink.close()
        >>> sink.flush()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.SinkClosedError: The sink of producer 'nyse' is closed. ...
    """


class ProcessForkedError(RowtimeError):
    """A stream was in use while the process was forked, and the child cannot open it: rows would be lost.

    A child made by fork may open any stream that no call was using at the fork: one waits up to 5 seconds for the calls
    of other threads. A child that ``multiprocessing`` starts with ``spawn`` or ``forkserver`` may open any.

    The same holds for an Iceberg catalog that another thread was using.

    ``values``:

    - ``path``: the path of the stream, or the table.
    """


class NotSerializableError(RowtimeError):
    """A sink or a reader was to be pickled, for example because a function that Spark runs in its workers uses it.

    It belongs to the process that opened it. Open one within the function, or write with
    ``df.writeStream.format("rowtime")``.

    ``values``:

    - ``kind``: "sink" or "reader".
    - ``path``: the path of the stream.

    Example:
        >>> import pickle
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-pickle", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openReader("memory://docs-pickle") as reader:
        ...     pickle.dumps(reader)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.NotSerializableError: A reader of memory://docs-pickle cannot be pickled: ...
    """


class ProducerFencedError(RowtimeError):
    """Another sink took the producer over, or somebody closed it. Nothing of the call was committed.

    Into a table: another drain or query has committed to it.

    ``values`` has those of these that the message is about:

    - ``producer``: the name of the producer.
    - ``epoch``: the epoch of the sink that was fenced.
    - ``current``: the epoch of the sink that has the producer now.
    - ``path``: the path of the stream that a query writes to, or the table.
    - ``query``: the id of that query.
    - ``batch``: the number of the batch.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-fenced", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> old = rt.openSink("memory://docs-fenced", producer="nyse")
        >>> new = rt.openSink("memory://docs-fenced", producer="nyse")
        >>> old.flush(checkpoint="offset 1")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.ProducerFencedError: Producer 'nyse' was taken over: ...
        >>> new.close()
        >>> old.abandon()
    """


class StoreCorruptError(RowtimeError):
    """Bytes on disk fail their check: the stream's files do not hold what was written.

    ``rowtime check STREAM`` reports what is still readable. Of a table: a commit by others is none of its format, or
    has a bound that is no time, or one of its files cannot be read as what it should be.

    ``values`` has those of these that the message is about:

    - ``path``: the path of the stream, or the table.
    - ``file``: the path of the file.
    - ``object``: the URL of the object that has the rows.
    - ``offset``: the position of the train in the file, in bytes.
    - ``train``: the sequence number of the train.
    - ``number``: the number of the rejection.
    """


class StoreUnavailableError(RowtimeError):
    """The store is locked, full or unreachable just now. A call that commits has committed nothing.

    A sink keeps what it took: call ``flush`` again once the cause is gone.

    ``values`` has those of these that the message is about:

    - ``path``: the path of the stream.
    - ``file``: the path of the file.
    - ``object``: the URL of the object that has the rows.
    - ``format``: the number of the stream's format, if it is newer than this version.
    - ``producer``: the producer that another process hosts.
    - ``pid``: the id of that process.
    - ``asked``: the sequence number that was asked for on a standby.
    - ``last``: the last sequence number that the standby has.
    - ``lacks``: "privilege" if the user of the database may not do this; "write permission" if this user may only read
      the directory; "lock" if another client of the database keeps the stream locked; "staged rows" if the rows of the
      commit were removed, since nobody committed them for a day, or may not be on the disk, since a sync has failed.
    """


class DataLostError(RowtimeError):
    """Rows that a reader, a query or a feed still needs, or that a sink had committed, are no longer there.

    The cause is retention, of a stream or a topic of Kafka, a deleted stream, an older copy of it, or a table or a
    topic that was set back. The message says what is left.

    ``values`` has those of these that the message is about:

    - ``path``: the path of the stream, or the table.
    - ``asked``: the sequence number that was asked for; of a sink, the number of its commit; of a topic, the offset up
      to which the stream has the partition.
    - ``last``: the last sequence number that the stream has; of a sink, the number of its producer's last commit there;
      of a topic, the offset at which the partition ends.
    - ``producer``: the producer of the sink.
    - ``horizon``: the sequence number up to which rows were removed; of a topic, the offset at which it begins.
    - ``rows``: the number of rows that were removed.
    - ``largest``: the largest rowtime among them, in microseconds since the epoch.
    - ``query``: the id of the query.
    - ``batch``: the number of the batch.
    - ``number``: the number of a rejection that was removed.
    - ``removed``: the number of rejected rows that were removed.
    - ``offset``: the offset in the query's checkpoint.
    - ``object``: the URL of the object that has the rows.
    - ``train``: the sequence number of the train.
    """


class StreamSetBackError(ProducerFencedError, DataLostError):
    """Another sink has the producer of this one in a stream that was replaced by an older copy, as from a backup.

    Rows that this sink had acknowledged may be gone. Nothing of the call was committed.

    ``values``:

    - ``path``: the path of the stream.
    - ``producer``: the producer of both sinks.
    """


class UnknownOptionError(RowtimeError):
    """An option or a keyword does not exist. If another one has a similar name, the message names it.

    ``values``:

    - ``option``: the unknown name.
    - ``nearest``: the most similar name that exists; None if none is similar.
    - ``adapter``: of an argument of an adapter, the adapter.
    """


class InvalidOptionError(RowtimeError):
    """An option or an argument has a value that cannot be used.

    ``values`` has those of these that the message is about:

    - ``option``: the name of the option or argument.
    - ``value``: the value, as text.
    - ``column``: the name of the column.
    - ``columns``: the names of several columns.
    - ``path``: the path of the stream.
    - ``producer``: the name of the producer.
    - ``stored``: the order of rows that the producer has declared before, as JSON.
    - ``given``: the order that is declared now, as JSON.
    - ``reader``: the name of the reader.
    - ``wanted``: the stream or the order that a position is of.
    - ``found``: the stream or the order that is read now.
    - ``seq``: the sequence number of a position.
    - ``spec``: the adapter, as ``module:Class``.
    - ``adapter``: the name of the adapter.
    - ``missing``: the methods that the adapter's class does not have.
    - ``provider``: the class of the session's state store.
    - ``stream``: the name of an input of a RowtimeTestStream.
    - ``query``: the id of the query.
    - ``operator``: the name of the query's operator.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.RowtimeBound("yesterday")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.InvalidOptionError: 'yesterday' is not a time: ...
    """


class KafkaUnavailableError(RowtimeError):
    """No broker of Kafka can be reached, or it refuses this client.

    Of a drain into a topic it is not known whether its last transaction was committed; the next drain finds out.

    ``values`` has those of these that the message is about:

    - ``servers``: the addresses of the brokers that were tried; None where the client is the caller's own.
    - ``code``: the name of Kafka's error.
    - ``topic``: the name of the topic.
    """


class KafkaTopicError(RowtimeError):
    """A topic does not exist, or it is not the topic that a position belongs to: it was deleted and recreated.

    ``values`` has those of these that the message is about:

    - ``topic``: the name of the topic.
    - ``topicId``: the id of the topic that the position, or the cut, belongs to.
    - ``foundId``: the id of the topic that has this name now; None if there is none.
    - ``partition``: the number of the partition.
    - ``servers``: the addresses of the brokers; None where the client is the caller's own.
    - ``producer``: the producer of the stream that has the position.
    """


class MessageDecodeError(RowtimeError):
    """A message of a topic cannot be decoded into a row. Its partition does not go on behind it.

    ``values``:

    - ``topic``: the name of the topic.
    - ``partition``: the number of the partition.
    - ``offset``: the offset of the message.
    - ``cause``: what is wrong with the message.
    """


class MessageNotReadyError(RowtimeError):
    """A decoder of your own raises it where it cannot say just now what a message is, as when a service is away.

    The feed decodes that message again, after a pause that grows to 30 seconds. Until then the partition waits; others
    go on. ``values`` are those that the decoder gives.

    Example:
        >>> import spark_rowtime as rt
        >>> def decode(message, prices={}):
        ...     if "IBM" not in prices:
        ...         raise rt.MessageNotReadyError("The price of IBM is not there yet.")
        >>> decode(None)
        Traceback (most recent call last):
            ...
        spark_rowtime.errors.MessageNotReadyError: The price of IBM is not there yet.
    """


class AnnouncementError(RowtimeError):
    """A target has refused an announcement, or has not taken it after all repetitions. It stays the next one.

    ``values``:

    - ``stream``: the path of the stream.
    - ``period``: the key of the period.
    - ``status``: the status of the last HTTP answer; None if there was none.
    - ``attempts``: how many calls were made.
    """


class DisorderedOutputError(RowtimeError):
    """A query's output, or what is sent into a table, has a row below the bound that was published.

    ``option("onDisorder", "reject")`` of a query into a stream records such rows as rejected instead.

    ``values``:

    - ``path``: the path of the stream, or the table, that is written to.
    - ``bound``: the published floor, in microseconds since the epoch.
    - ``boundOf``: of a stream, whose bound it was, "producer" or "stream", as for LateRowError.
    - ``boundBy``: the producer that raised it.
    - ``boundEvent``: the event by which it did.
    """


class ShimMissingError(RowtimeError):
    """The Spark session does not have the extension that carries bounds.

    ``rt.configure`` adds it to a session's builder, before Spark starts.

    ``values`` has those of these that the message is about:

    - ``extension``: the class of the extension.
    """


class ShimMismatchError(RowtimeError):
    """Spark's internals are not as the extension expects. Use a supported version of PySpark.

    ``values`` is empty.
    """


class ExtraNotInstalledError(RowtimeError):
    """An optional dependency is not installed; the message names the pip extra.

    ``values``:

    - ``extra``: the name of the pip extra.
    """


class WaitTimeoutError(RowtimeError):
    """``wait`` has ended before what was flushed was in the results of the stream.

    ``values``:

    - ``token``: the token of what was flushed.
    - ``path``: the path of the stream that was waited for.
    - ``holder``: the producer or the query that holds it; None if nobody does.
    - ``cause``: the code of the cause, as ``why`` gives it.
    - ``remedy``: what would release it.
    """


class SinkNotClosedWarning(RuntimeWarning):
    """A sink was garbage collected, or its process exited, before the sink was closed.

    Python shows it by default, as a RuntimeWarning.
    """


class ReaderNotRegisteredWarning(UserWarning):
    """A reader or a query reads a stream whose directory its user may not write into, so it is not registered.

    Retention does not wait for it. Python shows it by default, as a UserWarning.
    """
