from kt_manifest.contract import kinds
from kt_supervisor.engine.run import undelivered


def test_a_key_that_is_mapped_nowhere_is_told_and_no_other() -> None:
    command, mock = kinds.command(("true",), interactive=False, observe=False), kinds.builtin("mock")

    [told] = undelivered.notices(command, ["model", "restart.policy", "agent.X"])

    assert told.startswith("model reaches nobody: the adapter (kind command) maps it nowhere")
    assert [] == undelivered.notices(mock, ["model"])
