from pathlib import Path

import pytest

from kt_manifest.contract import json_schema, manifest_document


def test_every_table_has_a_section_and_every_key_a_row_with_words() -> None:
    said = manifest_document.fields()
    whole = json_schema.document()

    for name, table in {"": whole, **whole["$defs"]}.items():
        for key in table["properties"]:
            assert any(line.startswith(f"| `{key}` | ") for line in said.splitlines()), (name, key)
    rows = [line for line in said.splitlines() if line.startswith("| `")]
    assert all(5 <= row.replace("\\|", "").count("|") and not row.endswith(" | – |") for row in rows)


def test_tables_that_are_alike_are_one() -> None:
    said = manifest_document.fields()

    assert "### `[lifecycle.start]`, `[lifecycle.stop]`, `[lifecycle.pause]`, `[lifecycle.resume]`\n" in said
    assert 1 == said.count("| `exec` |")


@pytest.mark.parametrize(
    "row",
    [
        "| `contract_version` | string | required |",
        "| `args` | array of strings | optional |",
        "| `env` | table of strings | optional |",
        "| `env` | string | one of these |",
        '| `channel` | `"stdio"`, `"http"` | optional, `stdio` |',
        "| `port` | integer or string | one of these |",
        "| `deadline_s` | number | optional |",
        "| `config` | table of tables | optional |",
        "| `start` | table | required |",
    ],
)
def test_a_row_says_type_and_whether_it_must_be_there(row: str) -> None:
    assert f"\n{row} " in manifest_document.fields()


def test_a_page_keeps_what_is_around(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{manifest_document.BEGIN}old\n{manifest_document.END}after\n")

    manifest_document.write(page)

    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n")
    assert manifest_document.fields() in text and "old\n" not in text
    assert text == manifest_document.replaced(text)
