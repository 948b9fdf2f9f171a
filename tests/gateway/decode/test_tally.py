from typing import Any

from kt_gateway.decode import messages
from kt_gateway.decode.chat import SHAPE
from kt_gateway.decode.finding import Finding
from kt_gateway.decode.tally import Tally
from kt_ledger.values import Counts


def usage(prompt: Any, completion: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion}


def tally_of(*findings: Finding) -> Tally:
    tally = Tally(SHAPE)
    for number, finding in enumerate(findings):
        tally.take(finding, mono_ns=number)
    return tally


def counts(tally: Tally) -> Counts | None:
    return tally.measured.counts if tally.measured else None


def test_the_last_valid_usage_wins() -> None:
    tally = tally_of(Finding(usage=usage(9, 1)), Finding(usage=usage(9, 2)), Finding())

    assert counts(tally) == Counts(input=9, output=2)


def test_zeros_and_nonsense_replace_nothing() -> None:
    tally = tally_of(Finding(usage=usage(9, 2)), Finding(usage=usage(0, 0)), Finding(usage=usage("9", None)))

    assert counts(tally) == Counts(input=9, output=2)


def test_zeros_alone_measure_nothing_and_are_kept_to_be_looked_at() -> None:
    tally = tally_of(Finding(usage=usage(0, 0)))

    assert tally.measured is None
    assert tally.usage == usage(0, 0)


def test_usage_aside_counts_only_where_there_is_no_other() -> None:
    both = tally_of(Finding(usage=usage(9, 2)), Finding(usage_aside=usage(1, 1)))
    aside = tally_of(Finding(usage_aside=usage(1, 1)), Finding(usage=usage(0, 0)))

    assert counts(both) == Counts(input=9, output=2)
    assert counts(aside) == Counts(input=1, output=1)


def test_the_served_model_is_the_last_one_named_and_the_id_the_first() -> None:
    tally = tally_of(
        Finding(model="asked", request_id="1"), Finding(model="served", request_id="2"), Finding()
    )

    assert (tally.model, tally.request_id) == ("served", "1")


def test_the_first_word_has_a_time() -> None:
    tally = tally_of(Finding(), Finding(spoke=True), Finding(spoke=True))

    assert tally.spoke_at_ns == 1
    assert tally.knows_the_answer


def test_the_last_of_many_wins_however_they_are_measured() -> None:
    for many in (1, 15, 16, 17, 40):
        tally = tally_of(
            *(Finding(usage=usage(9, number)) for number in range(1, many + 1)), Finding(usage={})
        )

        assert counts(tally) == Counts(input=9, output=many)
        assert counts(tally) == Counts(input=9, output=many)


def test_usage_in_pieces_is_overlaid_key_by_key() -> None:
    tally = Tally(messages.SHAPE, overlays=True)

    tally.take(
        Finding(usage={"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 1}), mono_ns=1
    )
    tally.take(Finding(usage={"input_tokens": None, "output_tokens": 7}), mono_ns=2)

    assert counts(tally) == Counts(input=9, cache_read=4, output=7)
    assert tally.usage == {"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 7}


def test_the_last_word_says_whether_the_work_is_deferred() -> None:
    assert tally_of(Finding(deferred=True)).deferred
    assert not tally_of(Finding(deferred=True), Finding()).deferred
