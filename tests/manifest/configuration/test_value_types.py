import pytest

from kt_manifest.configuration import value_types


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (value_types.TEXT, "", ""),
        (value_types.COUNT, "0", "0"),
        (value_types.COUNT, "007", "7"),
        (value_types.COUNT, "18446744073709551615", "18446744073709551615"),
        (value_types.DOLLARS, ".5", ".5"),
        (value_types.DOLLARS, "3.", "3."),
        (value_types.DOLLARS, "0.000001", "0.000001"),
        (value_types.DOLLARS, "9223372036854.775807", "9223372036854.775807"),
        (value_types.BREACH_ACTION, "warn", "warn"),
        (value_types.LISTENER_AUTH, "none", "none"),
        (value_types.ARGUMENTS, " a  b ", ["a", "b"]),
        (value_types.ARGUMENTS, "", []),
        (value_types.CREDENTIAL, "sk-~!", "sk-~!"),
        (value_types.URL, "https://api.openai.com/v1", "https://api.openai.com/v1"),
        (value_types.URL, "HTTP://Host:8080/", "http://Host:8080"),
        (value_types.URL, "http://[::1]:9/a%20b//", "http://[::1]:9/a%20b"),
        (value_types.URL, "http://127.0.0.1", "http://127.0.0.1"),
        (value_types.URL, "http://h_1/a@b", "http://h_1/a@b"),
        (value_types.SECONDS, "0", "0"),
        (value_types.SECONDS, "0.250", "0.250"),
        (value_types.CORES, "1.5", "1.5"),
        (value_types.PROCESSES, "512", "512"),
        (value_types.DESCRIPTORS, "1073741824", "1073741824"),
        (value_types.FAILURES, "1000", "1000"),
        (value_types.BYTES, "512M", "512M"),
        (value_types.BYTES, "1", "1"),
        (value_types.SWITCH, "true", "true"),
        (value_types.RESTART_POLICY, "always", "always"),
        (value_types.COMMAND, "notify 'two words'", "notify 'two words'"),
    ],
)
def test_a_good_text_becomes_a_value(type_: value_types.ValueType, text: str, value: object) -> None:
    assert value == type_.parse(text)


BAD = {
    value_types.COUNT: [
        "",
        "-1",
        "+1",
        "1.0",
        "1e3",
        "1_000",
        " 1",
        "١",
        "18446744073709551616",
        "9" * 5000,
        "true",
    ],
    value_types.DOLLARS: [
        "",
        ".",
        "-1",
        "+1",
        "1e3",
        "1.2.3",
        "1,5",
        "$1",
        "0.0000001",
        "9223372036854.775808",
        "9" * 5000,
        "١",
    ],
    value_types.BREACH_ACTION: ["", "Pause", "block", "pause "],
    value_types.LISTENER_AUTH: ["", "Token", "off"],
    value_types.SECONDS: ["", "-1", "1e3", ".5", "5.", "0.0001", "31536001", "9" * 5000, "1s"],
    value_types.CORES: ["0", "0.001", "4097", "1,5", "-1"],
    value_types.PROCESSES: ["0", "1.0", "4194305", "-1"],
    value_types.DESCRIPTORS: ["0", "1.0", "1073741825", "-1"],
    value_types.FAILURES: ["0", "1.0", "1001", "-1"],
    value_types.BYTES: ["", "0", "0G", "M", "1.5G", "1KB", "1k", "-1", "9" * 15 + "T", "512 M"],
    value_types.SWITCH: ["", "True", "yes", "1"],
    value_types.RESTART_POLICY: ["", "Always", "unless-stopped"],
    value_types.COMMAND: ["", "  ", "an 'open quote"],
    value_types.CREDENTIAL: ["", "a b", "a\n", "a\r\nX-Evil: 1", "é"],
    value_types.URL: [
        "",
        "api.openai.com",
        "//host/v1",
        "/v1",
        "ftp://host",
        "file:///etc",
        "http://",
        "https:///v1",
        "http://user@host",
        "http://user:pass@host",
        "http://host?",
        "http://host/?key=1",
        "http://host#x",
        "http://host:0",
        "http://host:99999",
        "http://host:",
        "http://host:x",
        "http://[::1",
        "http://[x]",
        "http://ho st",
        "http://host/a b",
        "http://host\n",
        "http://hóst",
        "http://host/\\",
        "http://ho,st",
        "http://host/a/../b",
        "http://host/.",
        "javascript:alert(1)",
        "secret:X",
    ],
}


@pytest.mark.parametrize(("type_", "text"), [(type_, text) for type_, texts in BAD.items() for text in texts])
def test_a_bad_text_is_unfit(type_: value_types.ValueType, text: str) -> None:
    with pytest.raises(value_types.Unfit) as caught:
        type_.parse(text)

    assert str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "text", ["http://user:hunter2@host/", "http://host/?key=hunter2", "http://host/#hunter2", "hunter2 x"]
)
def test_what_may_be_a_secret_in_a_url_is_not_told(text: str) -> None:
    with pytest.raises(value_types.Unfit) as caught:
        value_types.URL.parse(text)

    assert "hunter2" not in str(caught.value)


def test_a_key_is_never_told() -> None:
    with pytest.raises(value_types.Unfit) as caught:
        value_types.CREDENTIAL.parse("hunter2 x")

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("7", 7), ("2K", 2048), ("3M", 3 << 20), ("1G", 1 << 30), ("1T", 1 << 40)]
)
def test_sizes_are_powers_of_1024(text: str, size_bytes: int) -> None:
    assert size_bytes == value_types.bytes_in(text)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("--a b\\c  d", ["--a", "b\\c", "d"]),
        ("--a 'b c'", ["--a", "b c"]),
        ("--a \"b 'c\" ''", ["--a", "b 'c", ""]),
        ("--say it\\'s", ["--say", "it's"]),
        ("", []),
    ],
)
def test_arguments_are_split_as_a_shell_would_where_there_is_a_quote(text: str, items: list[str]) -> None:
    assert items == value_types.ARGUMENTS.parse(text)
    assert items == value_types.ARGUMENTS.parse(value_types.as_typed(items))


@pytest.mark.parametrize("text", ["--a 'canary", '"', "it's"])
def test_a_quote_that_is_not_closed_is_refused_and_nothing_is_shown(text: str) -> None:
    with pytest.raises(value_types.Unfit) as refused:
        value_types.ARGUMENTS.parse(text)

    assert "quote that is not closed" in str(refused.value)
    assert "canary" not in str(refused.value)
