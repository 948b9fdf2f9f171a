"""What is set for an instance, over real files and without an engine."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kt_ledger.clock import SystemClock
from kt_ledger.layout import StateLayout
from kt_ledger.records import InstanceRow, State
from kt_manifest.configuration import config_file, layers, options
from kt_manifest.contract import kinds
from kt_supervisor.engine.instance.current_settings import CurrentSettings
from kt_supervisor.engine.instance.restart_policy import Due, History, Instant
from kt_supervisor.engine.run import run_settings

BAD = 'logs.cap = "lots"\n'


@pytest.fixture
def files(tmp_path: Any) -> StateLayout:
    layout = StateLayout(tmp_path)
    layout.home("bot").mkdir(parents=True)
    return layout


@pytest.fixture
def now(files: StateLayout) -> CurrentSettings:
    current = CurrentSettings(files, clock=SystemClock())
    current.know(_row())
    return current


def _row(**facts: Any) -> InstanceRow:
    adapter = replace(kinds.command(["true"], interactive=False, observe=False), defaults={"logs.cap": "8M"})
    row = InstanceRow(id="i", name="bot", kind="command", adapter=adapter.to_json(), created_at_ns=1)
    return replace(row, **facts)


def _fleet(files: StateLayout, text: str) -> None:
    files.fleet_config.write_text(text)


def _instance(files: StateLayout, text: str) -> None:
    (files.home("bot") / "config.toml").write_text(text)


def _start(files: StateLayout, now: CurrentSettings, overrides: dict[str, str], run_id: str = "r") -> None:
    run_settings.store(files, "i", run_id, now.for_a_fresh_start(_row(), overrides))
    now.know(_row(state=State.RUNNING, run_id=run_id))


def _told(now: CurrentSettings, key: str) -> tuple[Any, str, list[str]]:
    entry = next(entry for entry in now.of("bot").entries if entry.key == key)
    return entry.value, entry.source, [hidden.source for hidden in entry.hides]


def test_each_layer_wins_over_those_below_it(files: StateLayout, now: CurrentSettings) -> None:
    told = [_told(now, "logs.cap")]
    _fleet(files, 'logs.cap = "16M"\n')
    told.append(_told(now, "logs.cap"))
    _instance(files, 'logs.cap = "32M"\n')
    told.append(_told(now, "logs.cap"))
    _start(files, now, {"logs.cap": "64M"})
    told.append(_told(now, "logs.cap"))

    assert [
        ("8M", "kind-default", ["engine-default"]),
        ("16M", "fleet", ["kind-default", "engine-default"]),
        ("32M", "instance", ["fleet", "kind-default", "engine-default"]),
        ("64M", "invocation-override", ["instance", "fleet", "kind-default", "engine-default"]),
    ] == told


def _for_each_purpose(now: CurrentSettings, row: InstanceRow) -> list[Any]:
    asked = (now.for_a_fresh_start(row), now.for_a_restart(row), now.of_the_run(row))
    return [layers.effective(entries)["logs.cap"] for entries in asked]


def test_which_overrides_hold_depends_on_what_is_asked_for(files: StateLayout, now: CurrentSettings) -> None:
    told = [_for_each_purpose(now, _row())]
    _start(files, now, {"logs.cap": "64M"})
    told.append(_for_each_purpose(now, _row(state=State.RUNNING, run_id="r")))
    stopped = _row(state=State.STOPPED, run_id="r")
    now.know(stopped)
    told.append(_for_each_purpose(now, stopped))
    due = History(due=Due(at=Instant(boot_id="b", monotonic_ns=1, wall_ns=1), wait_s=1.0, why="x")).to_json()
    waits = _row(state=State.FAILED, run_id="r", restart=due)
    now.know(waits)
    told.append(_for_each_purpose(now, waits))

    assert [
        ["8M", "8M", "8M"],  # never started
        ["8M", "64M", "64M"],  # a Run under way
        ["8M", "64M", "8M"],  # no Run that they could hold for
        ["8M", "64M", "64M"],  # about to be brought back
    ] == told


def test_what_is_read_at_once_follows_the_fleet_too(files: StateLayout, now: CurrentSettings) -> None:
    _fleet(files, '[restart]\npolicy = "never"\nlimit = 3\n')

    policy = now.restart_policy("bot")

    assert ("never", 3, 600.0) == (policy.word, policy.limit, policy.window_s)


@pytest.mark.parametrize("where", ["fleet", "instance"])
@pytest.mark.parametrize(
    ("text", "names"),
    [
        (BAD, "logs.cap"),
        ("logs.cap = [1]\n", "logs.cap"),
        ('logs.cap = "16M', "line 1"),
        ('logs.cap = "16M"\nlogs.cap.x = 1\n', "line 2"),
    ],
)
def test_a_bad_value_is_an_alarm_refuses_a_start_and_leaves_the_last_good_one(
    files: StateLayout, now: CurrentSettings, where: str, text: str, names: str
) -> None:
    write = _fleet if where == "fleet" else _instance
    write(files, 'logs.cap = "16M"\n')
    assert "16M" == now.live("bot", "logs.cap")

    write(files, text)
    [alarm] = now.of("bot").alarms

    assert "16M" == now.live("bot", "logs.cap")
    assert (where, True) == (alarm.layer, names in alarm.message)
    assert "stays" in alarm.in_force
    assert "a start is refused" in alarm.in_force
    with pytest.raises((layers.LayerFault, config_file.MalformedLayer)):
        layers.effective(now.for_a_fresh_start(_row()))
    write(files, 'logs.cap = "4M"\n')
    assert ("4M", ()) == (now.live("bot", "logs.cap"), now.of("bot").alarms)


def test_the_last_good_value_outlives_the_engine(files: StateLayout, now: CurrentSettings) -> None:
    _instance(files, 'logs.cap = "16M"\nrestart.policy = "always"\n')
    _start(files, now, {})
    _instance(files, BAD + 'restart.policy = "sometimes"\n')

    later = CurrentSettings(files, clock=SystemClock())
    later.know(_row(state=State.RUNNING, run_id="r"))

    assert ("16M", "always") == (later.live("bot", "logs.cap"), later.restart_policy("bot").word)


def test_what_was_never_good_is_refused_and_not_taken_for_its_default(
    files: StateLayout, now: CurrentSettings
) -> None:
    _instance(files, 'restart.policy = "sometimes"\n')

    with pytest.raises(layers.LayerFault, match="sometimes"):
        now.restart_policy("bot")


def test_a_broken_file_casts_doubt_on_what_it_may_hold_and_on_nothing_stronger(
    files: StateLayout, now: CurrentSettings
) -> None:
    _instance(files, 'restart.policy = "always"\n')
    _fleet(files, "pause.hold_s =\n")

    assert "always" == now.live("bot", "restart.policy")
    with pytest.raises(config_file.MalformedLayer):
        now.live("bot", "pause.hold_s")


def test_a_bad_value_that_a_stronger_layer_hides_hurts_nobody_but_the_fleet(
    files: StateLayout, now: CurrentSettings
) -> None:
    _fleet(files, BAD)
    _instance(files, 'logs.cap = "2M"\n')

    assert () == now.of("bot").alarms
    assert "2M" == layers.effective(now.for_a_fresh_start(_row()))["logs.cap"]
    assert ["logs.cap"] == [alarm.key for alarm in now.of_fleet().alarms]


@pytest.mark.parametrize("weaker", ['limits.memory = "64M"\n', ""])
@pytest.mark.parametrize("text", ["limits = 5\n", '[limits.memory]\nmost = "64M"\n'])
def test_a_broken_value_above_or_below_a_key_casts_doubt_on_it(
    files: StateLayout, now: CurrentSettings, text: str, weaker: str
) -> None:
    """A wrong shape takes the weaker layers' value away; that is not the same as nobody having set one."""
    _fleet(files, weaker)
    _instance(files, text)

    found = now.of("bot")

    [fault] = found.faults.values()
    assert fault is found.doubt("limits.memory")
    assert found.doubt("model") is None
    assert found.doubt("limitsmore") is None


def test_a_broken_table_is_no_doubt_of_what_an_unbroken_layer_above_it_says(
    files: StateLayout, now: CurrentSettings
) -> None:
    _fleet(files, "limits = 5\n")
    _instance(files, 'limits.memory = "64M"\n')

    found = now.of("bot")

    assert ("64M", None) == (found.values["limits.memory"], found.doubt("limits.memory"))


@pytest.mark.parametrize("text", ["restart = 5\n", "[restart.policy]\nword = 1\n"])
def test_a_broken_shape_leaves_what_was_in_force(files: StateLayout, now: CurrentSettings, text: str) -> None:
    _instance(files, 'restart.policy = "always"\n')
    assert "always" == now.live("bot", "restart.policy")

    _instance(files, text)

    assert "always" == now.live("bot", "restart.policy")
    [alarm] = now.of("bot").alarms
    assert "takes effect at once there stays as it was, and a start is refused" in alarm.in_force


def test_a_broken_shape_that_was_never_good_is_refused_and_not_taken_for_unset(
    files: StateLayout, now: CurrentSettings
) -> None:
    _instance(files, "restart = 5\n")

    with pytest.raises(layers.LayerFault, match="restart"):
        now.live("bot", "restart.policy")


def test_an_unknown_key_by_hand_is_an_alarm_as_well(files: StateLayout, now: CurrentSettings) -> None:
    _fleet(files, 'modle = "x"\n')

    [alarm] = now.of("bot").alarms

    assert "did you mean model?" in alarm.message
    assert str(files.fleet_config) in alarm.message


@pytest.mark.parametrize(
    ("facts", "in_force"),
    [
        ({"state": State.STARTING}, True),
        ({"state": State.RUNNING}, True),
        ({"state": State.PAUSED}, True),
        ({"state": State.STOPPING}, True),
        ({"state": State.STOPPED}, False),
        ({"state": State.FAILED}, False),
        ({"state": State.RUNNING, "run_id": "another"}, False),
    ],
)
def test_overrides_hold_while_their_run_lives(
    files: StateLayout, now: CurrentSettings, facts: dict[str, Any], in_force: bool
) -> None:
    _start(files, now, {"agent.X": "1"})

    now.know(_row(**{"run_id": "r", **facts}))

    found = {entry.key for entry in now.of("bot").entries if entry.source == "invocation-override"}
    assert ({"agent.X"} if in_force else set()) == found


def test_the_next_start_has_its_own_overrides(files: StateLayout, now: CurrentSettings) -> None:
    _start(files, now, {"agent.X": "1"})
    first = _told(now, "agent.X")[0]

    now.know(_row(state=State.STARTING, run_id="r2"))
    between = now.of("bot").values.get("agent.X")
    _start(files, now, {"agent.X": "2"}, run_id="r2")

    assert ("1", None, "2") == (first, between, _told(now, "agent.X")[0])


def test_another_registration_under_the_name_knows_nothing_of_the_first(
    files: StateLayout, now: CurrentSettings
) -> None:
    _instance(files, 'restart.policy = "always"\n')
    assert "always" == now.live("bot", "restart.policy")
    _instance(files, 'restart.policy = "sometimes"\n')

    now.know(_row(id="another"))

    with pytest.raises(layers.LayerFault):
        now.live("bot", "restart.policy")


def test_two_hundred_keys_are_told_within_five_milliseconds(files: StateLayout, now: CurrentSettings) -> None:
    """The bound is the product's; what is measured is the owner, of whom a request is little more."""
    _instance(files, "".join(f'"agent.KEY_{number}" = "value {number}"\n' for number in range(200)))
    until_old_s = time.monotonic() + 1
    while now.of("bot") is not now.of("bot"):
        assert time.monotonic() < until_old_s

    assert 200 <= len(now.of("bot").entries)
    assert _p99_s(lambda: now.of("bot")) < 0.005


def _p99_s(ask: Callable[[], object]) -> float:
    times = []
    for _ in range(300):
        began = time.perf_counter()
        ask()
        times.append(time.perf_counter() - began)
    return sorted(times)[int(len(times) * 0.99)]


def test_every_setting_that_takes_effect_at_once_has_a_value_in_force_or_is_unset(
    files: StateLayout, now: CurrentSettings
) -> None:
    defaults = {option.key: option.default for option in options.OPTIONS}

    told = {key: now.live("bot", key) for key in options.LIVE}

    assert {key: defaults[key] for key in options.LIVE} | {"logs.cap": "8M"} == told
