import pytest

from kt_manifest.contract import manifest
from kt_manifest.contract.snapshot import Adapter, Ready


def _parse(valid: str, section: str) -> Adapter:
    return manifest.parse(f"{valid}\n[kt.ready]\n{section}\n", origin="adapter.toml")


@pytest.mark.parametrize(
    ("section", "ready"),
    [
        ('line = "up"', Ready(line="up")),
        ('line = "up"\nstream = "stderr"\ndeadline_s = 5', Ready(line="up", stream="stderr", deadline_s=5)),
        ("port = 8080\ndeadline_s = 0.5", Ready(port="8080", deadline_s=0.5)),
        ('port = "${PORT}"', Ready(port="${PORT}")),
        ('http = "http://localhost:80/health"', Ready(http="http://localhost:80/health")),
        ('http = "http://127.0.0.1:${PORT}/?a=${B}"', Ready(http="http://127.0.0.1:${PORT}/?a=${B}")),
        ('command = ["curl", "-f", "x"]', Ready(command=("curl", "-f", "x"))),
    ],
)
def test_what_is_declared_is_frozen(valid: str, section: str, ready: Ready) -> None:
    adapter = _parse(valid, section)

    assert ready == adapter.ready
    assert ready == Adapter.from_json(adapter.to_json()).ready


def test_without_it_nothing_is_declared(valid: str) -> None:
    assert manifest.parse(valid, origin="x").ready is None
    assert '"ready"' not in manifest.parse(valid, origin="x").to_json()


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("", "none of them"),
        ("deadline_s = 5", "none of them"),
        ('line = "up"\nport = 80', "line and port"),
        ('port = 80\nstream = "stdout"', "stream without line"),
        ('line = "("', "missing )"),
        (r"line = '(a)\1'", "invalid escape sequence"),
        ('line = ""', "any line has"),
        ('line = "x*"', "any line has"),
        ("line = 3", "a string"),
        ('line = "up"\nstream = "both"', "unknown word"),
        ("port = 0", "1 to 65535"),
        ("port = true", "1 to 65535"),
        ("port = 80.0", "1 to 65535"),
        ('port = "80"', "1 to 65535"),
        ('port = "${PORT}1"', "1 to 65535"),
        ("port = [80]", "1 to 65535"),
        ('http = "/health"', "plain http"),
        ('http = "https://127.0.0.1:1/"', "plain http"),
        ('http = "http://example.com:80/"', "loopback"),
        ('http = "http://${HOST}:80/"', "loopback"),
        ('http = "http://127.0.0.1/"', "without a port"),
        ('http = "http://u@127.0.0.1:1/"', "a user"),
        ('http = "http://127.0.0.1:1/ x"', "space"),
        ('http = "http://127.0.0.1:99999/"', "http ="),
        ("command = []", "no program"),
        ('command = ["./check"]', "relative"),
        ('command = ["check", "a\\u0000"]', "NUL"),
        ('command = "check"', "array"),
        ('command = ["check", 1]', "a string"),
        ('line = "up"\ndeadline_s = 0', "above 0"),
        ('line = "up"\ndeadline_s = -1', "above 0"),
        ('line = "up"\ndeadline_s = 3601', "3600"),
        ('line = "up"\ndeadline_s = nan', "above 0"),
        ('line = "up"\ndeadline_s = inf', "3600"),
        ('line = "up"\ndeadline_s = true', "above 0"),
        ('line = "up"\ndeadline_s = "5"', "above 0"),
        ('lines = "up"', "unknown key"),
    ],
)
def test_what_is_wrong_is_told_with_its_section(valid: str, section: str, says: str) -> None:
    with pytest.raises(manifest.ManifestInvalid) as refused:
        _parse(valid, section)

    assert "[kt.ready]" == refused.value.section
    assert says in str(refused.value)


def test_a_table_is_wanted(valid: str) -> None:
    with pytest.raises(manifest.ManifestInvalid) as refused:
        manifest.parse(f"{valid}\n[kt]\nready = 3\n", origin="x")

    assert "[kt.ready]" == refused.value.section
