"""A cut of topics: what a caller may give, the laws of merging, and what goes back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spark_rowtime as rt
from spark_rowtime.bounds.topic_cut import TopicCut, offsets_of, require_forward, to_cut

ENDS = st.dictionaries(st.integers(0, 2), st.integers(0, 5), min_size=1)
OFFSETS = st.dictionaries(st.sampled_from(["orders", "returns"]), ENDS)
CUTS = st.builds(TopicCut, OFFSETS, st.dictionaries(st.just("orders"), st.just("id")), st.booleans())


@given(CUTS, CUTS, OFFSETS)
def test_merge(one: TopicCut, other: TopicCut, offsets: Any) -> None:
    both = one.reached(offsets) and other.reached(offsets)
    assert one.merged(other).reached(offsets) is both
    assert other.merged(one).reached(offsets) is both


@given(CUTS, CUTS)
def test_part(one: TopicCut, other: TopicCut) -> None:
    part = other.since(one)
    assert one.merged(part).offsets == one.merged(other).offsets
    assert one.merged(part).ids == one.merged(other).ids
    assert part.partitions <= other.partitions


@given(CUTS)
def test_text(cut: TopicCut) -> None:
    assert TopicCut.of_text(cut.text()) == cut


def test_a_partition_that_is_missing_is_read_up_to_0() -> None:
    assert TopicCut({"orders": {0: 0}}).reached({})
    assert not TopicCut({"orders": {0: 1}}).reached({"orders": {1: 5}})


@pytest.mark.parametrize(("reads", "topic", "partition"), [(None, 0, 0), ("topics", 1, 0), ("partitions", 1, 1)])
def test_what_a_query_never_reads_holds_no_bound_back(reads: str | None, topic: int, partition: int) -> None:
    offsets = offsets_of({"orders": {"0": 5}}, reads)
    assert TopicCut({"orders": {0: 5}}).reached(offsets)
    assert not TopicCut({"orders": {0: 6}}).reached(offsets)
    assert TopicCut({"returns": {0: 9}}).reached(offsets) == topic
    assert TopicCut({"orders": {0: 5, 1: 9}}).reached(offsets) == partition


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (4711, "4711"),
        ({}, "is not a cut"),
        ({"": {0: 1}}, "not the name of a topic"),
        ({7: {0: 1}}, "7 is not the name of a topic"),
        ({"orders\ud800": {0: 1}}, "not the name of a topic"),
        ({"orders\n": {0: 1}}, "not the name of a topic"),
        ({"a" * 250: {0: 1}}, "not the name of a topic"),
        ({"orders": {}}, "no partition of topic 'orders'"),
        ({"orders": 4711}, "no partition of topic 'orders'"),
        ({"orders": {"0": 1}}, "'0' is not the number of a partition"),
        ({"orders": {True: 1}}, "True is not the number of a partition"),
        ({"orders": {-1: 1}}, "-1 is not the number of a partition"),
        ({"orders": {0: -1}}, r"-1 is not an offset of orders\[0\]"),
        ({"orders": {0: 1.0}}, r"1.0 is not an offset of orders\[0\]"),
        ({"orders": {0: 1 << 63}}, r"is not an offset of orders\[0\]"),
    ],
)
def test_what_is_no_cut_is_refused(given: Any, says: str) -> None:
    with pytest.raises(rt.InvalidOptionError, match=says) as caught:
        to_cut(given)
    assert caught.value.values["option"] == "cut"


def test_ids_are_of_topics_that_the_cut_names() -> None:
    assert to_cut({"orders": {0: 1}}, {"orders": "x"}).ids == {"orders": "x"}
    for ids in ({"returns": "x"}, {"orders": 7}, {"orders": ""}, ["orders"]):
        with pytest.raises(rt.InvalidOptionError, match="topicIds"):
            to_cut({"orders": {0: 1}}, ids)


def test_a_cut_that_goes_back_names_the_offsets() -> None:
    before = TopicCut({"orders": {0: 4711, 1: 3}})
    require_forward(before, TopicCut({"orders": {0: 4711}, "returns": {0: 0}}), "app")
    with pytest.raises(rt.CutRegressionError, match=r"orders\[0\] is at 4690") as caught:
        require_forward(before, TopicCut({"orders": {0: 4690, 1: 9}}), "app")
    assert caught.value.values == {"producer": "app", "topic": "orders", "partition": 0, "offset": 4690, "said": 4711}


def test_a_topic_that_was_created_again_is_an_error() -> None:
    before = TopicCut({"orders": {0: 4711}}, {"orders": "old"})
    with pytest.raises(rt.KafkaTopicError, match="deleted and created again") as caught:
        require_forward(before, TopicCut({"orders": {0: 9000}}, {"orders": "new"}), "app")
    assert caught.value.values == {"topic": "orders", "topicId": "old", "foundId": "new"}


@pytest.mark.parametrize(
    ("partition", "offset"), [((1 << 31) - 1, (1 << 63) - 1), (1 << 31, 0), (0, 1 << 63), (-1, 0), (0, -1)]
)
def test_a_cut_has_numbers_that_kafka_has(partition: int, offset: int) -> None:
    if 0 <= partition < 1 << 31 and 0 <= offset < 1 << 63:
        assert to_cut({"orders": {partition: offset}}).offsets == {"orders": {partition: offset}}
    else:
        with pytest.raises(rt.InvalidOptionError):
            to_cut({"orders": {partition: offset}})
