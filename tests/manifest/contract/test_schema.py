from kt_manifest.contract import schema


def test_every_table_knows_its_keys() -> None:
    assert schema.known_keys(("metering",)) == ("source",)
    assert schema.known_keys(("config", "any.key")) == ("env", "flag", "file")
    assert schema.known_keys(("config", "x", "file")) == ("path", "key")
    assert "ready" in schema.known_keys(("kt",))
    assert set(schema.known_keys(("kt", "ready"))) > {"line", "port", "http", "command"}
    assert schema.known_keys(("kt", "other")) == ()
    assert "send" in schema.known_keys(("kt",))
    assert "kt" in schema.known_keys(())


def test_misfits_come_in_the_order_of_the_document_and_with_their_kind() -> None:
    document = {
        "x": 1,
        "metering": {"source": "guess", "y": 2},
        "adapter": {"kind": 3},
        "lifecycle": {"start": {"args": ["a", 1, True], "env": {"A": 1}}},
        "kt": {"z": {}},
    }

    found = [(misfit.kind, misfit.loc) for misfit in schema.misfits(document)]

    assert found == [
        ("key", ("x",)),
        ("word", ("metering", "source")),
        ("key", ("metering", "y")),
        ("type", ("adapter", "kind")),
        ("type", ("lifecycle", "start", "args", 1)),
        ("type", ("lifecycle", "start", "args", 2)),
        ("type", ("lifecycle", "start", "env", "A")),
        ("key", ("kt", "z")),
    ]


def test_a_document_that_fits_has_none_however_little_is_in_it() -> None:
    assert schema.misfits({}) == []
    assert schema.misfits({"kt": {}, "config": {}, "adapter": {}}) == []
