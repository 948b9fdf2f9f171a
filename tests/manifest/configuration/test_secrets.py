import os
from pathlib import Path

import pytest

from kt_manifest.configuration import secrets

CANARY = "canary-7c1f"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "secrets.toml"
    path.write_text(f'KEY = "{CANARY}"\nNUMBER = 3\nEMPTY = ""\nNUL = "a\\u0000"\n[table]\nKEY = "x"\n')
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("secret:A", True),
        ("secret: ", True),
        ("secret:", False),
        ("Secret:A", False),
        ("x secret:A", False),
        (["secret:A"], False),
        (3, False),
    ],
)
def test_a_reference_is_the_whole_value(value: object, is_one: bool) -> None:
    assert is_one is secrets.is_reference(value)


def test_a_reference_is_masked_and_anything_else_is_not() -> None:
    assert secrets.mask("secret:A") == "secret:****"
    assert secrets.mask("a") == "a"
    assert secrets.mask(["secret:A"]) == ["secret:A"]


def test_what_is_no_reference_is_itself(file: Path) -> None:
    assert secrets.resolve("plain", environment={}, secrets_file=file) == "plain"


def test_the_callers_environment_comes_first_unless_it_is_empty(file: Path) -> None:
    assert secrets.resolve("secret:KEY", environment={"KEY": "mine"}, secrets_file=file) == "mine"
    assert secrets.resolve("secret:KEY", environment={"KEY": ""}, secrets_file=file) == CANARY
    assert secrets.resolve("secret:KEY", environment={}, secrets_file=file) == CANARY


@pytest.mark.parametrize("name", ["NUMBER", "EMPTY", "table", "OTHER", "table.KEY"])
def test_an_entry_that_is_no_text_is_absent(file: Path, name: str) -> None:
    with pytest.raises(secrets.SecretUnresolved, match=f"secret:{name}") as caught:
        secrets.resolve(f"secret:{name}", environment={}, secrets_file=file)

    assert (1, name) == (caught.value.exit_code, caught.value.name)
    is_there = name in ("NUMBER", "table")
    assert (("an entry in secrets.toml that is no text",) if is_there else ()) == caught.value.tried
    assert all(part in str(caught.value) for part in (caught.value.got, caught.value.wanted, caught.value.do))


def test_the_message_is_short_and_right_whenever_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(secrets.SecretUnresolved) as caught:
        secrets.resolve("secret:KEY", environment={}, secrets_file=tmp_path / "secrets.toml")

    assert str(caught.value) == (
        "unresolved secret: wanted a value for secret:KEY, got none in the caller's environment, secrets.toml or the "
        "keyring; `kt secret set KEY`, or start with the variable KEY"
    )


def test_what_is_missing_can_be_shown_masked(tmp_path: Path) -> None:
    missing: list[secrets.SecretUnresolved] = []

    resolved = secrets.resolve_all(
        {"agent.A": "secret:A", "agent.B": "x ${secret:A} ${secret:B}"},
        environment={},
        secrets_file=tmp_path / "secrets.toml",
        missing=missing,
    )

    assert {"agent.A": "secret:****", "agent.B": "x secret:**** secret:****"} == dict(resolved.values)
    assert ["A", "B"] == [error.name for error in missing]


def test_a_value_that_no_variable_can_carry_is_none(file: Path) -> None:
    with pytest.raises(secrets.SecretUnresolved, match="NUL"):
        secrets.resolve("secret:NUL", environment={}, secrets_file=file)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610, 0o601, 0o602, 0o666])
def test_a_file_that_lets_anybody_else_in_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)

    with pytest.raises(secrets.SecretUnresolved, match="chmod 600") as caught:
        secrets.resolve("secret:KEY", environment={}, secrets_file=file)

    assert CANARY not in str(caught.value)


def test_a_link_counts_as_the_file_that_it_leads_to(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)

    assert secrets.resolve("secret:KEY", environment={}, secrets_file=link) == CANARY


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused_through_a_link_as_well(file: Path, tmp_path: Path) -> None:
    os.chown(file, 12345, -1)
    link = tmp_path / "link"
    link.symlink_to(file)

    for path in (file, link):
        with pytest.raises(secrets.SecretUnresolved, match="another user"):
            secrets.resolve("secret:KEY", environment={}, secrets_file=path)


@pytest.mark.parametrize(
    "content", [f'KEY = "{CANARY}', f"{CANARY} = ", f"KEY = {CANARY}", f"KEY = '{CANARY}'\n\xff"]
)
def test_a_malformed_file_tells_its_line_and_nothing_of_its_content(file: Path, content: str) -> None:
    file.write_bytes(content.encode("latin-1"))

    with pytest.raises(secrets.SecretUnresolved, match="not valid TOML \\(line") as caught:
        secrets.resolve("secret:KEY", environment={}, secrets_file=file)

    assert CANARY not in str(caught.value)


def test_a_file_that_is_none_is_told_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")

    for name, says in (
        ("missing", "got none in the caller's environment, secrets.toml or the keyring"),
        ("fifo", "a FIFO"),
        ("loop", "cannot be read"),
        ("\0", "cannot be read"),
    ):
        with pytest.raises(secrets.SecretUnresolved, match=says):
            secrets.resolve("secret:KEY", environment={}, secrets_file=tmp_path / name)


def test_settings_are_resolved_together_and_remember_which_were_secret(file: Path) -> None:
    resolved = secrets.resolve_all(
        {"model": "m", "metering.upstream_api_key": "secret:KEY", "acp.args": ["a"]},
        environment={},
        secrets_file=file,
    )

    assert resolved.values == {"model": "m", "metering.upstream_api_key": CANARY, "acp.args": ["a"]}
    assert resolved.secret_keys == {"metering.upstream_api_key"}
    assert CANARY not in repr(resolved)


def test_a_resolved_value_must_be_of_its_keys_type_and_is_not_shown(file: Path) -> None:
    from kt_manifest.configuration import settings

    for key in ("metering.upstream_base_url", "metering.upstream_api_key"):
        with pytest.raises(settings.InvalidValue) as caught:
            resolved = secrets.resolve_all(
                {key: "secret:KEY"}, environment={"KEY": f"{CANARY} x"}, secrets_file=file
            )
            settings.check_resolved(resolved)

        assert CANARY not in str(caught.value)


def test_a_resolved_value_is_brought_into_its_keys_form(file: Path) -> None:
    from kt_manifest.configuration import settings

    resolved = secrets.resolve_all(
        {"metering.upstream_base_url": "secret:URL", "agent.X": "secret:KEY", "model": "m"},
        environment={"URL": "http://h/v1/"},
        secrets_file=file,
    )

    assert settings.check_resolved(resolved) == {
        "metering.upstream_base_url": "http://h/v1",
        "agent.X": CANARY,
        "model": "m",
    }
