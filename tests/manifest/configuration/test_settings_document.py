from kt_manifest.configuration import options, settings_document


def test_the_document_names_every_key_with_its_default_and_effect() -> None:
    document = settings_document.markdown()
    table = document.partition("Types:")[0]
    rows = {line.split("`")[1]: line for line in table.splitlines() if line.startswith("| `")}

    assert set(options.BY_KEY) == set(rows)
    for key, option in options.BY_KEY.items():
        assert option.effect.value in rows[key]
        assert (f"`{option.default}`" if option.default else "unset") in rows[key]


def test_no_placeholder_is_left_in_it() -> None:
    without_references = settings_document.markdown().replace("${secret:", "")

    assert "{" not in without_references
