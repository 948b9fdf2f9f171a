import pytest

from kt_manifest.contract import manifest
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.contract.trial import Trial


def _parse(valid: str, section: str) -> Adapter:
    return manifest.parse(f"{valid}\n[kt.test]\n{section}\n", origin="adapter.toml")


@pytest.mark.parametrize(
    ("section", "trial"),
    [
        ("", Trial()),
        ('args = ["--once"]', Trial(args=("--once",))),
        ('say = "Repeat {nonce}."', Trial(say="Repeat {nonce}.")),
        ('stream = ["-s"]\ncrash = []', Trial(stream=("-s",), crash=())),
        ('dump = ["--dump={path}"]', Trial(dump=("--dump={path}",))),
        ('settings = { model = "m", "agent.X" = "1" }', Trial(settings={"model": "m", "agent.X": "1"})),
        ('outside = [".gitconfig", "tmp/x"]', Trial(outside=(".gitconfig", "tmp/x"))),
        ('ends = "when-done"', Trial(ends_when_done=True)),
        ('ends = "when-stopped"', Trial()),
        ("reports = { input_tokens = 3, output_tokens = 0 }", Trial(input_tokens=3, output_tokens=0)),
    ],
)
def test_what_is_declared_is_read(valid: str, section: str, trial: Trial) -> None:
    assert trial == _parse(valid, section).trial


def test_nothing_of_it_is_frozen(valid: str) -> None:
    declared = _parse(valid, 'args = ["--once"]')

    assert manifest.parse(valid, origin="x").to_json() == declared.to_json()
    assert Trial() == Adapter.from_json(declared.to_json()).trial


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("prompt = 'x'", 'unknown key in [kt.test]: got the unknown key "prompt", wanted only args, say'),
        ("args = 'x'", "an array of strings"),
        ("args = [1]", "[kt.test]: got args.0 = 1"),
        (r'args = ["a\u0000"]', "args with"),
        ('say = "hello"', "say without {nonce}"),
        (r'say = "{nonce}\u0000"', "say with"),
        ('say = "{nonce}' + "x" * 4096 + '"', "say of 4103 characters"),
        ('outside = ["/etc"]', 'outside with "/etc"'),
        ('outside = ["../x"]', 'outside with "../x"'),
        ('dump = ["--dump"]', "dump without {path}"),
        ("dump = []\nends = 'never'", "unknown word"),
        ("settings = { modle = 'x' }", "settings with"),
        ("settings = { 'metering.base_url' = 'x' }", "settings with"),
        ("settings = { 'pause.hold_s' = 'soon' }", "settings with"),
        ("settings = { model = 1 }", "a string"),
        ("reports = {}", "reports without one of its counts"),
        ("reports = { input_tokens = 1 }", "reports without one of its counts"),
        ("reports = { input_tokens = -1, output_tokens = 1 }", "got reports of -1"),
        ("reports = { input_tokens = true, output_tokens = 1 }", "not both 0"),
        ("reports = { input_tokens = 0, output_tokens = 0 }", "got reports of 0"),
        ("reports = { input_tokens = 1, output_tokens = 1, calls = 1 }", "unknown key"),
        ("reports = 3", "a table"),
    ],
)
def test_what_cannot_be_meant_is_refused(valid: str, section: str, says: str) -> None:
    with pytest.raises(manifest.ManifestInvalid) as refused:
        _parse(valid, section)

    assert says in str(refused.value)
    assert "[kt.test" in refused.value.section
