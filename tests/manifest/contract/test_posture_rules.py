import pytest

from kt_manifest.contract import manifest
from kt_manifest.contract.declared_posture import ConfigSwitch, Isolation, Posture, Updates, Version
from kt_manifest.contract.manifest import ManifestInvalid
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.launch.placeholders import SYNTAXES

ISOLATION = '[kt.isolation]\nenv = { A = "data" }\n'
UPDATES = '[kt.updates]\nenv = { NO_UPDATE = "1" }\n'


def _fault(valid: str, more: str) -> ManifestInvalid:
    with pytest.raises(ManifestInvalid) as caught:
        manifest.parse(valid + more, origin="x")
    return caught.value


def test_everything_that_can_be_declared_is_frozen(valid: str) -> None:
    text = valid + (
        '[kt.substitution]\nsyntax = ["{env:VAR}", "$VAR"]\n'
        "[kt.isolation]\n"
        'env = { XDG_DATA_HOME = "xdg\\\\data", AGENT_HOME = "xdg/home" }\n'
        'undocumented = ["AGENT_HOME"]\nvalidated = "1.18.33"\n'
        "[kt.updates]\n"
        'env = { NO_UPDATE = "1" }\nargs = ["-c", "update=false"]\n'
        'config = { env = "CONTENT", key = "auto.update", value = false }\n'
        'switch = "three ways"\nmanaged_layer = "an MDM profile can"\nverified = "1.18.33"\n'
        '[kt.version]\ncommand = ["agent", "--version"]\npattern = "^agent ([0-9.]+)$"\n'
    )

    adapter = manifest.parse(text, origin="x")

    assert adapter.posture == Posture(
        substitution=("{env:VAR}", "$VAR"),
        isolation=Isolation(
            env={"XDG_DATA_HOME": "xdg/data", "AGENT_HOME": "xdg/home"},
            undocumented=("AGENT_HOME",),
            validated="1.18.33",
        ),
        updates=Updates(
            env={"NO_UPDATE": "1"},
            args=("-c", "update=false"),
            config=ConfigSwitch(env="CONTENT", key="auto.update", value=False),
            switch="three ways",
            managed_layer="an MDM profile can",
            verified="1.18.33",
        ),
        version=Version(command=("agent", "--version"), pattern="^agent ([0-9.]+)$"),
    )
    assert adapter == Adapter.from_json(adapter.to_json())


def test_the_schema_and_the_scanner_know_the_same_syntaxes(valid: str) -> None:
    listed = ", ".join(f'"{syntax}"' for syntax in SYNTAXES)

    adapter = manifest.parse(valid + f"[kt.substitution]\nsyntax = [{listed}]\n", origin="x")

    assert SYNTAXES == adapter.posture.substitution


@pytest.mark.parametrize(
    ("more", "section", "got"),
    [
        ("[kt.substitution]\n", "[kt.substitution]", "no syntax"),
        ("[kt.substitution]\nsyntax = []\n", "[kt.substitution]", "no syntax"),
        ('[kt.substitution]\nsyntax = ["$VAR", "$VAR"]\n', "[kt.substitution]", '"$VAR" twice'),
        ('[kt.substitution]\nsyntax = "$VAR"\n', "[kt.substitution]", "syntax ="),
        ("[kt.isolation]\n", "[kt.isolation]", "no env"),
        ("[kt.isolation]\nenv = {}\n", "[kt.isolation]", "no env"),
        ('[kt.isolation]\nenv = { "A=B" = "d" }\n', "[kt.isolation]", "a name with '='"),
        ('[kt.isolation]\nenv = { PATH = "d" }\n', "[kt.isolation]", "env.PATH"),
        ('[kt.isolation]\nenv = { A = "" }\n', "[kt.isolation]", "an empty path"),
        ('[kt.isolation]\nenv = { A = "/d" }\n', "[kt.isolation]", "an absolute path"),
        ('[kt.isolation]\nenv = { A = "C:d" }\n', "[kt.isolation]", "an absolute path"),
        ('[kt.isolation]\nenv = { A = "../d" }\n', "[kt.isolation]", "'.' or '..'"),
        ('[kt.isolation]\nenv = { A = "a\\\\..\\\\d" }\n', "[kt.isolation]", "'.' or '..'"),
        ('[kt.isolation]\nenv = { A = "a\\u0000" }\n', "[kt.isolation]", "control character"),
        ('[kt.isolation]\nenv = { A = "config.toml" }\n', "[kt.isolation]", "kt's own file"),
        ('[kt.isolation]\nenv = { A = "Effective-Config.json/a" }\n', "[kt.isolation]", "kt's own file"),
        ("[kt.isolation]\nenv = { A = 3 }\n", "[kt.isolation]", "env.A = 3"),
        (ISOLATION + 'undocumented = ["B"]\nvalidated = "1"\n', "[kt.isolation]", 'undocumented: "B"'),
        (ISOLATION + 'undocumented = ["A"]\n', "[kt.isolation]", "undocumented without validated"),
        (ISOLATION + 'validated = ""\n', "[kt.isolation]", 'validated = ""'),
        (ISOLATION + 'validated = "1 or 2"\n', "[kt.isolation]", 'validated = "1 or 2"'),
        ('[kt.isolation]\nenv = { LOG_LEVEL = "d" }\n', "[kt.isolation]", "which [lifecycle.start] env sets"),
        (
            '[config.other]\nfile = { path = "d/x.toml", key = "k" }\n[kt.isolation]\nenv = { A = "d/x.toml" }\n',
            "[kt.isolation]",
            'env.A = "d/x.toml"',
        ),
        (
            '[config.other]\nfile = { path = "d", key = "k" }\n[kt.isolation]\nenv = { A = "d/x" }\n',
            "[kt.isolation]",
            'env.A = "d/x"',
        ),
        ("[kt.updates]\n", "[kt.updates]", "nothing that switches it off"),
        ("[kt.updates]\nnever = false\n", "[kt.updates]", "nothing that switches it off"),
        ('[kt.updates]\nnever = true\nargs = ["-x"]\n', "[kt.updates]", "never = true and args"),
        ('[kt.updates]\nnever = "yes"\n', "[kt.updates]", 'never = "yes"'),
        (
            "[kt.updates]\nnever = true\nmanaged_layer = true\n",
            "[kt.updates]",
            "never = true and managed_layer",
        ),
        ('[kt.updates]\nargs = [""]\n', "[kt.updates]", "an argument: an empty one"),
        ('[kt.updates]\nargs = ["a\\u0000"]\n', "[kt.updates]", "an argument: a NUL"),
        ('[kt.updates]\nenv = { "A B" = "1" }\n', "[kt.updates]", "a name with a space"),
        ('[kt.updates]\nenv = { NO_PROXY = "1" }\n', "[kt.updates]", "env.NO_PROXY"),
        ('[kt.updates]\nenv = { A = "\\u0000" }\n', "[kt.updates]", "env.A with a NUL"),
        ('[kt.updates]\nenv = { LOG_LEVEL = "1" }\n', "[kt.updates]", "which [lifecycle.start] env sets"),
        ('[kt.updates]\nenv = { MODEL = "1" }\n', "[kt.updates]", "which [config.model] sets"),
        (ISOLATION + '[kt.updates]\nenv = { A = "1" }\n', "[kt.updates]", "which [kt.isolation] sets"),
        ('[kt.updates]\nconfig = { env = "A" }\n', "[kt.updates]", "config without key and value"),
        (
            '[kt.updates]\nconfig = { env = "A", key = "a..b", value = false }\n',
            "[kt.updates]",
            'config.key = "a..b"',
        ),
        ('[kt.updates]\nconfig = { env = "A=", key = "a", value = 1 }\n', "[kt.updates]", "a name with '='"),
        (
            '[kt.updates]\nconfig = { env = "A", key = "a", value = 1.5 }\n',
            "[kt.updates]",
            "config.value = 1.5",
        ),
        (
            '[kt.updates]\nconfig = { env = "A", key = "a", value = 9007199254740993 }\n',
            "[kt.updates]",
            "config.value = 9007199254740993",
        ),
        (
            ISOLATION + '[kt.updates]\nconfig = { env = "A", key = "a", value = 1 }\n',
            "[kt.updates]",
            'config.env = "A"',
        ),
        (UPDATES + "managed_layer = 3\n", "[kt.updates]", "managed_layer = 3"),
        (UPDATES + 'managed_layer = " "\n', "[kt.updates]", "managed_layer with no words"),
        (UPDATES + f'switch = "{"x" * 301}"\n', "[kt.updates]", "switch with 301 characters"),
        (UPDATES + 'switch = "\\u001b[31m"\n', "[kt.updates]", "switch with a control character"),
        (UPDATES + 'verified = "\\n"\n', "[kt.updates]", 'verified = "\\n"'),
        ("[kt.version]\n", "[kt.version]", "command with no program"),
        ('[kt.version]\ncommand = []\npattern = "(a)"\n', "[kt.version]", "command with no program"),
        ('[kt.version]\ncommand = ["./a"]\npattern = "(a)"\n', "[kt.version]", "relative to a folder"),
        ('[kt.version]\ncommand = ["a", "\\u0000"]\npattern = "(a)"\n', "[kt.version]", "a NUL character"),
        ('[kt.version]\ncommand = ["a"]\n', "[kt.version]", "no pattern"),
        ('[kt.version]\ncommand = ["a"]\npattern = "a"\n', "[kt.version]", "a pattern with 0 groups"),
        ('[kt.version]\ncommand = ["a"]\npattern = "(a)(b)"\n', "[kt.version]", "a pattern with 2 groups"),
        ('[kt.version]\ncommand = ["a"]\npattern = "(a"\n', "[kt.version]", 'pattern = "(a"'),
    ],
)
def test_a_fault_is_named_with_its_table(valid: str, more: str, section: str, got: str) -> None:
    fault = _fault(valid, more)

    assert (section, "invalid_field") == (fault.section, fault.kind)
    assert got in fault.got
    assert fault.wanted
    assert fault.do


@pytest.mark.parametrize(
    ("more", "suggestion"),
    [
        ('[kt.substitutions]\nsyntax = ["$VAR"]\n', "substitution"),
        ('[kt.substitution]\nsyntaxes = ["$VAR"]\n', "syntax"),
        (ISOLATION + 'validatet = "1"\n', "validated"),
        ("[kt.updates]\nnevr = true\n", "never"),
        ('[kt.updates]\nconfig = { env = "A", keys = "a", value = 1 }\n', "key"),
        ('[kt.version]\ncommands = ["a"]\n', "command"),
    ],
)
def test_an_unknown_key_is_one_and_the_known_one_is_suggested(valid: str, more: str, suggestion: str) -> None:
    fault = _fault(valid, more)

    assert "unknown_key" == fault.kind
    assert suggestion in fault.do


def test_another_syntax_is_an_unknown_word(valid: str) -> None:
    fault = _fault(valid, '[kt.substitution]\nsyntax = ["<VAR>"]\n')

    assert "unknown_word" == fault.kind
    assert "{env:VAR}" in fault.wanted


def test_a_rendered_file_may_lie_in_an_isolated_folder(valid: str) -> None:
    more = '[config.other]\nfile = { path = "config/a.toml", key = "k" }\n[kt.isolation]\nenv = { A = "config" }\n'

    adapter = manifest.parse(valid + more, origin="x")

    assert adapter.posture.isolation == Isolation(env={"A": "config"})


def test_a_setting_may_have_the_variable_of_an_isolated_folder(valid: str) -> None:
    """As `memory.dir` has, where an agent keeps everything in one folder: it wins then, and that is told."""
    more = '[config."memory.dir"]\nenv = "A"\n[kt.isolation]\nenv = { A = "home" }\n'

    assert manifest.parse(valid + more, origin="x").posture.isolation is not None
