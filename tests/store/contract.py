"""What every store promises, whatever keeps the bytes. A test module gives a ``store`` fixture and takes these."""

from __future__ import annotations

import numpy as np
import pytest

from strikeout.errors import BusyError, UnknownIdError, UsageError
from strikeout.quotes.quotes import join
from strikeout.store.store import PAGE_KINDS, Counts, Store
from tests.raising import raises
from tests.store.books import bits, features, quotes


class StorePromises:
    def test_quotes_come_back_to_the_last_bit(self, store: Store):
        book = quotes(3000)
        with store.writing() as tx:
            tx.add(book)
        assert bits(store.now.quotes()) == bits(book)

    def test_features_come_back_to_the_last_bit(self, store: Store):
        with store.writing() as tx:
            tx.add(features(50))
        assert bits(store.now.quotes()) == bits(features(50))

    def test_two_imports_are_the_join_of_both(self, store: Store):
        first, second = quotes(70, seed=1), quotes(1100, seed=2)
        for book in (first, second):
            with store.writing() as tx:
                tx.add(book)
        assert bits(store.now.quotes()) == bits(join(first, second))

    def test_a_label_only_one_import_has_is_empty_or_not_a_number_in_the_other(self, store: Store):
        first = quotes(4, seed=1)
        bare = quotes(3, seed=2)
        second = type(bare)(ids=bare.ids, contracts=bare.contracts, observed=bare.observed)
        with store.writing() as tx:
            tx.add(first)
            tx.add(second)
        labels = store.now.quotes().labels
        assert labels["source"][4:].tolist() == ["", "", ""]
        assert np.isnan(labels["delta"][4:]).all()
        assert np.isnat(labels["date"][4:]).all()
        assert labels["volume"][:4].tolist() == first.labels["volume"].tolist()

    def test_an_empty_book_has_no_quotes(self, store: Store):
        assert len(store.now.quotes()) == 0
        assert store.now.counts() == Counts(0, 0)
        assert store.now.entries() == ()
        assert store.now.struck() == {}

    def test_ids_of_any_text_come_back(self, store: Store):
        few = quotes(5)
        names = ["é\n\t", "𝛿", 'a"b', "x" * 300, "NUL\0inside"]
        with store.writing() as tx:
            tx.add(type(few)(ids=names, contracts=few.contracts, observed=few.observed))
        assert store.now.quotes().ids.tolist() == names
        assert store.now.named(["𝛿"]).observed.tolist() == [few.observed[1]]

    def test_an_id_that_is_there_is_not_added_again_and_nothing_is_changed(self, store: Store):
        with store.writing() as tx:
            tx.add(quotes(10))

        def add_again() -> None:
            with store.writing() as tx:
                tx.put("state", "s", b"lost with the rest")
                tx.add(join(quotes(10), quotes(10, seed=5)))

        with pytest.raises(UsageError, match="10 of the 20 quotes have ids that are in the book"):
            add_again()
        assert store.now.counts() == Counts(10, 0)
        assert store.now.page("state", "s") is None

    def test_quotes_of_another_kind_are_refused(self, store: Store):
        with store.writing() as tx:
            tx.add(quotes(10))
        with (
            raises(UsageError, here="options"),
            store.writing() as tx,
        ):
            tx.add(features(3))

    def test_struck_quotes_are_apart_and_come_back(self, store: Store):
        book = quotes(2500)
        gone = book.ids[[3, 1200, 2400]]
        with store.writing() as tx:
            tx.add(book)
            tx.strike(gone, entry=4)
        assert bits(store.now.quotes()) == bits(book.without(gone))
        assert bits(store.now.quotes(struck=True)) == bits(book.only(gone))
        assert bits(store.now.quotes(struck=None)) == bits(book)
        assert store.now.struck() == dict.fromkeys(sorted(gone.tolist()), 4)
        assert store.now.counts() == Counts(2497, 3)
        with store.writing() as tx:
            tx.unstrike(gone[1:])
        assert bits(store.now.quotes()) == bits(book.without(gone[:1]))

    def test_named_quotes_come_in_the_order_of_the_book_struck_or_not(self, store: Store):
        book = quotes(2500)
        wanted = book.ids[[2400, 3, 1200]]
        with store.writing() as tx:
            tx.add(book)
            tx.strike(wanted[:1], entry=0)
        assert bits(store.now.named(wanted)) == bits(book.only(wanted))

    def test_known_says_which_ids_the_book_holds(self, store: Store):
        with store.writing() as tx:
            tx.add(quotes(10))
            tx.strike(["q-0-0002"], entry=0)
        assert store.now.known(["q-0-0001", "stranger", "q-0-0002"]).tolist() == [True, False, True]

    @pytest.mark.parametrize("verb", ["named", "strike", "erase", "unstrike"])
    @pytest.mark.parametrize(
        ("ids", "says"), [(["q-0-0001", "none"], "1 of the 2 ids"), (["q-0-0001"] * 2, "more than once")]
    )
    def test_ids_unknown_or_given_twice_are_refused_and_nothing_is_changed(self, store: Store, verb, ids, says):
        with store.writing() as tx:
            tx.add(quotes(10))
            tx.strike(["q-0-0001", "q-0-0003"], entry=0)
            if verb == "strike":
                tx.unstrike(["q-0-0001"])
        before = store.now.struck()
        more = {"entry": 1} if verb == "strike" else {}
        with pytest.raises(UnknownIdError, match=says), store.writing() as tx:
            getattr(tx.now if verb == "named" else tx, verb)(ids, **more)
        assert (store.now.struck(), len(store.now.quotes(struck=None))) == (before, 10)

    def test_what_is_struck_out_cannot_be_struck_out_again(self, store: Store):
        with store.writing() as tx:
            tx.add(quotes(10))
            tx.strike(["q-0-0001"], entry=0)
        with pytest.raises(UnknownIdError, match="struck out already"), store.writing() as tx:
            tx.strike(["q-0-0001"], entry=1)

    def test_erased_quotes_are_gone_struck_or_not_and_their_names_are_free(self, store: Store):
        book = quotes(2500)
        gone = book.ids[[3, 1200, 2400]]
        with store.writing() as tx:
            tx.add(book)
            tx.strike(gone[:2], entry=1)
        with store.writing() as tx:
            tx.erase(gone)
        assert bits(store.now.quotes(struck=None)) == bits(book.without(gone))
        assert (store.now.struck(), store.now.counts()) == ({}, Counts(2497, 0))
        assert store.now.known(gone).tolist() == [False] * 3
        with store.writing() as tx:
            tx.add(book.only(gone))
        assert len(store.now.quotes()) == 2500

    def test_erasing_everything_leaves_an_empty_book_for_any_kind(self, store: Store):
        with store.writing() as tx:
            tx.add(quotes(1500))
        with store.writing() as tx:
            tx.erase(quotes(1500).ids)
        with store.writing() as tx:
            tx.add(features(5))
        assert bits(store.now.quotes()) == bits(features(5))

    def test_pages_are_kept_replaced_and_removed_each_kind_apart(self, store: Store):
        with store.writing() as tx:
            for kind in PAGE_KINDS:
                tx.put(kind, "b", kind.encode())
            tx.put("state", "a", b"")
            tx.put("state", "b", b"\x00\xffnew")
            tx.remove("plan", "b")
            tx.remove("plan", "never was")
        assert store.now.pages("state") == ("a", "b")
        assert (store.now.page("state", "a"), store.now.page("state", "b")) == (b"", b"\x00\xffnew")
        assert (store.now.page("plan", "b"), store.now.pages("plan")) == (None, ())
        assert store.now.page("certificate", "b") == b"certificate"

    def test_an_unknown_page_kind_is_refused(self, store: Store):
        for ask in (lambda: store.now.page("attic", "a"), lambda: store.now.pages("attic")):
            with pytest.raises(UsageError) as refused:
                ask()
            assert refused.value.facts["kind"] == "attic"
        with raises(UsageError, kind="state"), store.writing() as tx:
            tx.put("state", "", b"x")

    def test_shards_hold_every_quote_once_in_the_order_they_came(self, store: Store):
        book = quotes(700)
        with store.writing() as tx:
            tx.add(book[:300])
            tx.add(book[300:])
            tx.strike(["q-0-0002"], entry=0)
        shards = store.now.shards()
        assert sum(shards.values()) == 700
        assert [name for shard in shards for name in store.now.members(shard)] == book.ids.tolist()
        assert [len(store.now.members(shard)) for shard in shards] == list(shards.values())
        homes = store.now.shards_of(book.ids[[2, 650]])
        assert all(name in store.now.members(shard) for name, shard in homes.items())
        with raises(UnknownIdError, ids=["none"]):
            store.now.shards_of(["q-0-0001", "none"])

    def test_what_shards_leave_behind_is_kept_replaced_and_taken_away(self, store: Store):
        with store.writing() as tx:
            tx.add(quotes(600))
            for shard in tx.now.shards():
                tx.put_shard_data(shard, "footprints", b"%d" % shard)
                tx.put_shard_data(shard, "states", b"old")
            tx.put_shard_data(0, "states", b"\x00\xffnew")
            tx.remove_shard_data("footprints", [1])
            tx.remove_shard_data("footprints", [1])
        assert (store.now.shard_data(0, "states"), store.now.shard_data(1, "states")) == (b"\x00\xffnew", b"old")
        assert (store.now.shard_data(0, "footprints"), store.now.shard_data(1, "footprints")) == (b"0", None)
        assert store.now.shards_with("footprints") == tuple(shard for shard in store.now.shards() if shard != 1)
        assert store.faults() == []

    def test_only_of_shards_that_are_there_and_only_what_is_known_is_kept(self, store: Store):
        with store.writing() as tx:
            tx.add(quotes(10))
        with raises(UsageError, shard=9), store.writing() as tx:
            tx.put_shard_data(9, "states", b"x")
        with raises(UsageError, what="pages"):
            store.now.shard_data(0, "pages")
        with raises(UsageError, what="chunks"), store.writing() as tx:
            tx.put_shard_data(0, "chunks", b"x")

    def test_what_a_shard_leaves_behind_goes_when_one_of_its_quotes_is_erased(self, store: Store):
        with store.writing() as tx:
            tx.add(quotes(600))
            for shard in tx.now.shards():
                tx.put_shard_data(shard, "footprints", b"f")
                tx.put_shard_data(shard, "states", b"s")
        touched = store.now.shards_of(["q-0-0003"])["q-0-0003"]
        with store.writing() as tx:
            tx.strike(["q-0-0599"], entry=0)  # a strike-out takes nothing away
            tx.erase(["q-0-0003"])
        for what in ("footprints", "states"):
            assert store.now.shards_with(what) == tuple(shard for shard in store.now.shards() if shard != touched)
        assert store.faults() == []

    def test_entries_are_numbered_from_zero_in_the_order_they_came(self, store: Store):
        with store.writing() as tx:
            assert [tx.append(b"first"), tx.append(b"second")] == [0, 1]
        with store.writing() as tx:
            assert tx.append(b"third") == 2
        assert store.now.entries() == (b"first", b"second", b"third")
        with pytest.raises(UsageError, match="at least one byte"), store.writing() as tx:
            tx.append(b"")

    def test_a_transaction_sees_its_own_changes_and_one_that_fails_leaves_none(self, store: Store):
        with store.writing() as tx:
            tx.add(quotes(10))
            tx.put("state", "s", b"kept")

        def fail() -> None:
            with store.writing() as tx:
                tx.add(quotes(10, seed=1))
                tx.strike(["q-1-0000"], entry=0)
                tx.erase(["q-0-0000"])
                tx.put("state", "s", b"changed")
                tx.append(b"entry")
                assert (tx.now.counts(), tx.now.page("state", "s"), tx.now.entries()) == (
                    Counts(18, 1),
                    b"changed",
                    (b"entry",),
                )
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fail()
        assert bits(store.now.quotes(struck=None)) == bits(quotes(10))
        assert (store.now.page("state", "s"), store.now.entries(), store.faults()) == (b"kept", (), [])

    def test_a_second_writer_is_refused_and_the_first_goes_on(self, store: Store):
        with store.writing() as tx:
            tx.add(quotes(5))
            with pytest.raises(BusyError, match="written"), store.writing():
                pass
            tx.put("state", "s", b"kept")
        assert store.now.page("state", "s") == b"kept"

    def test_reads_that_belong_together_are_of_one_moment(self, store: Store):
        with store.writing() as tx:
            tx.add(quotes(5))
            tx.put("state", "s", b"1")
        with store.reading() as moment:
            assert (len(moment.quotes()), moment.page("state", "s")) == (5, b"1")

    def test_a_sound_book_has_no_faults(self, store: Store):
        with store.writing() as tx:
            tx.add(quotes(2500))
            tx.strike(["q-0-0007"], entry=0)
            tx.put("state", "s", b"1")
            tx.append(b"entry")
        with store.writing() as tx:
            tx.put("state", "s", b"2")
            tx.erase(["q-0-0008", "q-0-0007"])
        assert store.faults() == []
