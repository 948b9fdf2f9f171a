import io
import json
import logging

import pytest

from kt_supervisor.engine.output.known_secrets import SHOWN, KnownOfAll, KnownSecrets

SECRET = "canary-5e77a1c0"


def test_a_text_is_cleaned_of_all_that_is_known() -> None:
    known = KnownSecrets(SECRET, "another-secret")

    assert "a **** b **** c" == known.clean(f"a {SECRET} b another-secret c")
    assert SECRET not in repr(known)


def test_a_value_shorter_than_eight_bytes_is_left_alone() -> None:
    known = KnownSecrets("1234567", "12345678")

    assert (b"12345678",) == known.values
    assert "1234567 ****" == known.clean("1234567 12345678")


def test_of_two_that_contain_each_other_nothing_is_left() -> None:
    assert "****" == KnownSecrets("secret-abc", "secret-abc-and-more").clean("secret-abc-and-more")


def test_a_value_is_known_inside_of_json_and_line_by_line() -> None:
    known = KnownSecrets('a "quoted" value', "-----BEGIN KEY-----\nMIIEvAIBADAN\n")

    assert '{"x": "****"}' == known.clean('{"x": "a \\"quoted\\" value"}')
    assert "  ****" == known.clean("  MIIEvAIBADAN")


def test_bytes_that_are_no_text_can_be_a_secret() -> None:
    assert (b"\xff-binary-key",) == KnownSecrets("\udcff-binary-key").values[-1:]


def test_facts_are_cleaned_where_they_are_texts() -> None:
    known = KnownSecrets(SECRET)

    assert {"detail": "it said ****", "code": 3} == known.clean_facts(
        {"detail": f"it said {SECRET}", "code": 3}
    )


def test_the_log_of_an_engine_is_cleaned_tracebacks_included() -> None:
    everything, written = KnownOfAll(), io.StringIO()
    root = logging.Logger("root-of-this-test")
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    root.addHandler(handler)
    everything.guard_log(root)
    known = everything.of_run(SECRET)

    root.error("failed with %s", SECRET)
    try:
        raise ValueError(SECRET)
    except ValueError:
        root.exception("at %s", "work")

    assert written.getvalue().startswith("ERROR failed with ****\n")
    assert "ValueError: ****" in written.getvalue()
    assert SECRET not in written.getvalue()
    assert known.values


def test_what_belongs_to_no_run_any_more_is_forgotten() -> None:
    everything = KnownOfAll()
    everything.of_run(SECRET)

    assert SECRET == everything.clean(SECRET)


@pytest.mark.parametrize(
    "spelled",
    [
        r"s3cr3t/with/slash\u0026amp\u003ctag\u003e",  # Go
        r"s3cr3t\/with\/slash&amp<tag>",  # PHP
        r"s3cr3t\/with\/slash\u0026amp\u003Ctag\u003E",
    ],
)
def test_a_value_is_known_as_encoders_of_other_languages_write_it(spelled: str) -> None:
    assert f'"{SHOWN}"' == KnownSecrets("s3cr3t/with/slash&amp<tag>").clean(f'"{spelled}"')


@pytest.mark.parametrize("value", ['quo"te\\back-slash', "ünïcödé-ß-secret", "with\nline ends\tand tabs"])
def test_a_value_is_known_in_json_that_stands_in_json_and_as_python_writes_it(value: str) -> None:
    known = KnownSecrets(value)
    twice = json.dumps(json.dumps({"x": value}))

    assert SHOWN in known.clean(twice)
    assert f"'{SHOWN}'" == known.clean(f"'{repr(value)[1:-1]}'")
