"""matchRecognize: patterns of rows, as MATCH_RECOGNIZE in SQL finds them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from spark_rowtime.errors import InvalidOptionError, SchemaMismatchError
from spark_rowtime.operators.bucketed import BUCKETS, packed, passed
from spark_rowtime.operators.chunks import BUCKET, uniform
from spark_rowtime.operators.columns import (
    check_columns,
    check_streaming,
    kept_field,
    keys_of,
    quoted,
    sequence_of,
    twice,
    unpacked_fields,
)
from spark_rowtime.operators.match_conditions import condition, result_type
from spark_rowtime.operators.match_expressions import Node, tree_of
from spark_rowtime.operators.match_pattern import parsed
from spark_rowtime.operators.match_processor import MatchProcessor
from spark_rowtime.operators.match_references import Reference, References, SqlText, Token
from spark_rowtime.operators.match_rows import Matches, column_of
from spark_rowtime.operators.match_search import Search
from spark_rowtime.spark.versioned_pickle import versioned
from spark_rowtime.types.arguments import known_keywords, to_choice, to_text, to_texts
from spark_rowtime.types.timestamps import to_required_interval

_PAST_LAST, _TO_NEXT = "past last row", "to next row"


@known_keywords
def matchRecognize(
    df: DataFrame,
    partitionBy: str | Sequence[str] = (),
    *,
    pattern: str,
    define: Mapping[str, str],
    measures: Mapping[str, str],
    within: str | timedelta,
    after: str = _PAST_LAST,
    rowtime: str = "rowtime",
    buckets: int = BUCKETS,
) -> DataFrame:
    """Finds the sequences of rows of a key that match a pattern, as MATCH_RECOGNIZE in SQL. Gives one row per match.

    The rows of a key are in the order of ``rowtime``, those of one time in the order of their other columns. A match is
    a run of rows without gaps, each mapped to a variable of the pattern. A row can be mapped to a variable if the
    condition of the variable in ``define`` is true for it. Of the matches that begin at a row, that counts which the
    pattern prefers: of an alternative the first one that leads to a match, of a repetition as many rows as possible,
    or, with ``?`` behind it, as few.

    A match is emitted in the first batch whose bound says that no later row changes it: at the row that ends its last
    repetition, or when the bound is more than ``within`` above its first row. Rows without a time match nothing.

    In ``define`` a column is that of the row for which the condition is asked; ``A.price`` is that of the last row of A
    so far. ``measures`` are over the match: a column is that of its last row. References are ``FIRST(A.price)``,
    ``LAST(A.price)`` and, with a number of rows, ``LAST(A.price, 1)``; ``PREV(price)``, ``PREV(A.price, 2)``: of so
    many rows before, in the match or before it, NULL if it is more than ``within`` before; ``COUNT(*)``,
    ``COUNT(A.*)``, ``SUM``, ``AVG``, ``MIN`` and ``MAX`` of ``(A.price)``. Without a variable they are over all rows of
    the match. Inside a reference stands any SQL over one row. Around references, measures are any SQL; conditions are
    AND, OR, NOT, comparisons, IS NULL, BETWEEN, IN, ``+ - * /``, ABS and COALESCE, where x / 0 is NULL.

    The state holds the rows above the bound, and of each key those of the last ``within`` at which a match may begin,
    with the values of the SQL over one row. A query that is started again with other SQL over one row than rows in its
    state have is refused.

    Args:
        df: A streaming DataFrame with a watermarked TIMESTAMP column ``rowtime``, or a batch DataFrame.
        partitionBy: The column or columns that form the key. By default, all rows have the same key.
        pattern: Variables, one after the other; ``( )``, ``|``, and behind a part ``*``, ``+``, ``?``, ``{n}``,
            ``{n,}``, ``{,m}`` or ``{n,m}``, each maybe with a ``?``. As in SQL, case does not matter.
        define: The condition of each variable, in SQL. A variable without one takes any row.
        measures: The expression of each result, in SQL.
        within: How far the last row of a match may be behind its first one, both included: an interval such as
            ``"1 hour"``, or a timedelta.
        after: Where the next match may begin: ``"past last row"`` of a match, or ``"to next row"`` behind its first
            one; then matches overlap.
        rowtime: The name of the column with the event time.
        buckets: The number of parts into which the keys are divided, which limits the number of parallel
            tasks. It belongs to the checkpoint, as the number of shuffle partitions does.

    Returns:
        A DataFrame with one row for each match: the columns ``partitionBy``, ``rowtime`` (that of the last row of the
        match), and ``measures``. The bound of the output is that of ``df`` less ``within``.

    Raises:
        InvalidOptionError: An argument is not possible, ``rowtime`` has no watermark, or the session does not use the
            RocksDB state store. Spark's own errors say what is wrong with the SQL over one row.
        SchemaMismatchError: A column is missing or not unique, or its type or name cannot be used. In the batch that
            meets them: rows in the state have no value of some SQL over one row.
        ExtraNotInstalledError: The pip extra ``operators`` is not installed.

    Example:
        ```python
        matchRecognize(
            prices, "ticker", pattern="START DOWN+ UP+", within="1 hour",
            define={"DOWN": "price < PREV(price)", "UP": "price > PREV(price)"},
            measures={"since": "START.rowtime", "lowest": "LAST(DOWN.price)"},
        )
        ```
    """
    keys = keys_of(partitionBy)
    check_columns(df.schema, keys, rowtime, BUCKET)
    automaton = parsed(to_text(pattern, "pattern"))
    asked = _Asked(df, keys, rowtime, automaton.variables, to_texts(define, "define"), to_texts(measures, "measures"))
    micros = to_required_interval(within, "within")
    overlapping = to_choice(after, "after", _PAST_LAST, _TO_NEXT) == _TO_NEXT
    types = asked.types()
    conditions = {name: condition(text, tree, types, name) for name, (text, tree) in asked.conditions.items()}
    matches = Matches(
        Search(automaton, conditions, micros, overlapping),
        keys,
        rowtime,
        asked.columns,
        {name: reference for reference, name in asked.results.items()},
        sequence_of(df.schema, rowtime),
        max((reference.back for reference in asked.references), default=0),
    )
    fields = [StructField(name, result_type(of, types, asked.told[of])) for of, name in asked.results.items()]
    if df.isStreaming:
        check_streaming(df, rowtime, buckets)
        found = _streaming(asked.rows(), matches, fields, df.schema, buckets)
    else:
        found = _in_batch(asked.rows(), matches, fields, df.schema)
    return found.select(*quoted([*keys, rowtime]), *(F.expr(text).alias(name) for name, text in asked.measured.items()))


class _Asked:
    """What is asked for: the conditions and measures, and the SQL over one row that is in them, each once.

    ``columns``: the column of each such text. ``results``: that of each reference of the measures.
    """

    def __init__(
        self,
        df: DataFrame,
        keys: list[str],
        rowtime: str,
        variables: list[str],
        define: Mapping[str, str],
        measures: Mapping[str, str],
    ) -> None:
        self._df, self._given = df, [*keys, rowtime]
        self._find = References(variables, df.columns)
        self.conditions = dict(self._condition(name, text, variables) for name, text in define.items())
        self.results: dict[Reference, str] = {}
        self.told: dict[Reference, SqlText] = {}
        self.measured = {name: self._measure(text) for name, text in self._named(measures).items()}
        texts = [text for _, tree in self.conditions.values() for text in tree.texts()]
        texts += [reference.text for reference in self.results if reference.text != "*"]
        self.columns = {text: column_of(text) for text in dict.fromkeys(texts)}

    @property
    def references(self) -> list[Reference]:
        """All references, of conditions and of measures."""
        trees = [token for _, tree in self.conditions.values() for token in tree.tokens]
        return [token for token in trees if isinstance(token, Reference)] + list(self.results)

    def rows(self) -> DataFrame:
        """The rows, with all that is computed for each."""
        timed = self._df.where(F.col(f"`{self._given[-1]}`").isNotNull())
        return timed.select("*", *(F.expr(text).alias(name) for text, name in self.columns.items()))

    def types(self) -> dict[str, DataType]:
        """The type of each text over one row."""
        schema = self.rows().schema
        return {text: schema[name].dataType for text, name in self.columns.items()}

    def _condition(self, name: str, text: str, variables: list[str]) -> tuple[str, tuple[SqlText, Node]]:
        variable = name.upper()
        if variable not in variables:
            raise InvalidOptionError(
                f"define: {name} is not in the pattern, whose variables are {', '.join(sorted(set(variables)))}.",
                option="define",
            )
        whole = SqlText("define", text)
        return variable, (whole, tree_of(whole, self._find.within(whole, whole=False), variable))

    def _named(self, measures: Mapping[str, str]) -> Mapping[str, str]:
        if not measures:
            raise InvalidOptionError("measures is empty. Give for example {'rows': 'COUNT(*)'}.", option="measures")
        if (name := twice(measures, self._given)) is not None:
            raise SchemaMismatchError(f"measures: the result has a column {name!r} already. Rename the measure.")
        return measures

    def _measure(self, text: str) -> str:
        """Returns a measure over the columns of ``results``."""
        whole = SqlText("measures", text)
        return " ".join(self._placed(token, whole) for token in self._find.within(whole, whole=True))

    def _placed(self, token: Token, text: SqlText) -> str:
        if isinstance(token, str):
            return token
        self.told.setdefault(token, text)
        return self.results.setdefault(token, f"__measure{len(self.results)}")


def _streaming(
    rows: DataFrame, matches: Matches, fields: list[StructField], given: StructType, buckets: int
) -> DataFrame:
    chunks = packed(_needed(rows, matches), matches.by, matches.rowtime, buckets)
    schema = StructType(unpacked_fields(_given(given, matches), matches.rowtime) + fields)
    kept = kept_field("rows of matches", buckets)
    return passed(chunks, MatchProcessor(matches), kept, schema, matches.rowtime, matches.search.within)


def _needed(rows: DataFrame, matches: Matches) -> DataFrame:
    """Returns the columns that the matches need."""
    names = dict.fromkeys([*matches.by, matches.rowtime, *matches.sequence, *matches.columns.values()])
    return rows.select(*quoted(list(names)))


def _in_batch(rows: DataFrame, matches: Matches, fields: list[StructField], given: StructType) -> DataFrame:
    schema = StructType(_given(given, matches).fields + fields)
    return _needed(rows, matches).groupBy(*quoted(matches.by)).applyInArrow(_of_key(matches), schema)


def _of_key(matches: Matches) -> Callable[[pa.Table], pa.Table]:
    """Returns a function of one parameter, for applyInArrow."""

    def found(rows: pa.Table) -> pa.Table:
        return matches.advance(matches.opened(uniform(rows)), None)[0]

    run = versioned(found)

    def matched(rows: pa.Table) -> pa.Table:
        return run(rows)

    return matched


def _given(schema: StructType, matches: Matches) -> StructType:
    return StructType([schema[name] for name in (*matches.by, matches.rowtime)])
