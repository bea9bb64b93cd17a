"""A closed stream in each store: who is not named cannot attach, whichever way it comes; ``alter`` changes that."""

from dataclasses import replace

import pytest

import spark_rowtime as rt
from spark_rowtime.errors import InvalidOptionError, StreamCompleteError
from spark_rowtime.store import open_shared_store
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.types.alteration import columns_to_add
from tests.store.streams import SECOND, NewStream, Writer, at, batch, infos

DAY = 86400 * SECOND


def test_who_is_not_named_cannot_attach_and_changes_nothing(new_stream: NewStream) -> None:
    """Also under a name that differs in a letter alone."""
    store = new_stream(closed=("Berlin", "Oslo"))()
    store.expect(["Berlin", "Oslo"])
    before, head = infos(store), store.head()
    for name in ("attacker", "berlin", "Berlin "):
        with pytest.raises(InvalidOptionError, match=f"'{name}' may not send to .* all but 'Berlin', 'Oslo'") as caught:
            Writer(store, name)
        assert caught.value.values == {"producer": name, "path": store.path}
    assert (infos(store), store.head()) == (before, head)
    Writer(store, "Oslo").send([1], floor=1)
    assert store.head().rows == 1


def test_open_objects_keep_the_settings_and_later_ones_have_the_new(new_stream: NewStream) -> None:
    open_again = new_stream(maxAhead=DAY, retainRejected=7)
    old = open_again()
    Writer(old, "guest").send([1], floor=1)
    old.alter(change=lambda settings: replace(settings, maxAhead=None, closed=("Berlin",)))
    new = open_again()
    assert new.settings == StreamSettings(maxAhead=None, closed=("Berlin",), retainRejected=7)
    assert old.settings == StreamSettings(maxAhead=DAY, retainRejected=7)
    with pytest.raises(InvalidOptionError):
        Writer(new, "guest", "again")
    Writer(new, "Berlin").send([2], floor=2)


def test_sinks_of_one_process_share_no_store_with_other_settings(new_stream: NewStream) -> None:
    """A sink that is opened after the stream was closed is refused, although an older sink has the stream open."""
    path = new_stream()().path
    with rt.openSink(path, producer="guest"), open_shared_store(path):
        rt.alterStream(path, producers=["Berlin"], closed=True)
        with pytest.raises(rt.InvalidOptionError, match="closed to all but 'Berlin'"):
            rt.openSink(path, producer="attacker")
        rt.alterStream(path, closed=False)
        rt.openSink(path, producer="attacker").close()


def test_expecting_again_changes_nothing_and_a_stream_that_goes_on_waits(new_stream: NewStream) -> None:
    store = new_stream()()
    writer = Writer(store, "a")
    writer.send([5], floor=5)
    before = store.head()
    store.expect(["a"])
    assert store.head() == before
    store.expect(["a", "b"])
    writer.send([9], floor=9)
    assert store.head().floor == at(5)
    Writer(store, "b").send(floor=7)
    assert store.head().floor == at(7)


def test_what_is_altered_together_is_altered_as_a_whole(new_stream: NewStream) -> None:
    open_stream = new_stream()
    Writer(store := open_stream(), "Berlin").complete([1])
    with pytest.raises(StreamCompleteError):
        store.alter(columns_to_add("coupon STRING"), lambda settings: replace(settings, maxAhead=None), ["Oslo"])
    assert (open_stream().schema.names, open_stream().settings) == (["rowtime", "n"], store.settings)


def test_a_complete_stream_expects_nobody(new_stream: NewStream) -> None:
    store = new_stream()()
    Writer(store, "a").complete([1])
    with pytest.raises(StreamCompleteError):
        store.expect(["b"])
    assert [one.name for one in infos(store)] == ["a"]


def test_a_copy_stays_closed(new_stream: NewStream, tmp_path: object) -> None:
    store = new_stream(closed=("Berlin",), maxAhead=DAY)()
    path = "memory://copy of closed" if store.path.startswith("memory") else f"{tmp_path}/copy"
    rt.copyStream(store.path, path)
    assert rt.describeStream(path).settings == {"closed": ("Berlin",)}
    with pytest.raises(rt.InvalidOptionError), rt.openSink(path, producer="attacker") as sink:
        sink.sendRows(batch(1))
