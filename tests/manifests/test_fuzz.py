"""A million manifests that nobody would write: each is accepted or refused by a named error, soon, and leaves nothing.

`KT_SEED=n` repeats; a failure prints the seed, the number and the input. Long: `make chaos`.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.manifests.mutations import Mutations

from kt_cli import main
from kt_manifest.contract import manifest
from kt_manifest.contract.snapshot import Adapter

NAMED = (manifest.ManifestInvalid, manifest.ContractIncompatible)
SHORT = 3_000
LONG = int(os.environ.get("KT_FUZZ_INPUTS", "1000000"))
LONGEST_CPU_S = 1.0
HANGS_CPU_S = 20.0
LONGEST_MESSAGE = 2_500
"""Some texts of 80 characters, each of which may be shown by ten."""
TELL_EVERY = 100_000
REGISTER_EVERY = 1_000
"""Of the refused ones, every so many is given to the whole `kt agent register`."""


class Hangs(Exception):
    """One input took too long."""


def _hangs(number: int, frame: FrameType | None) -> None:
    raise Hangs


@pytest.fixture
def alarmed() -> Iterator[None]:
    before = signal.signal(signal.SIGPROF, _hangs)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def _judged(data: bytes) -> str:
    """Return what became of an input."""
    found = manifest.judge_bytes(data, origin="adapter.toml")
    if found.adapter is not None:
        assert not found.faults
        assert found.adapter == Adapter.from_json(found.adapter.to_json())
        return "accepted"
    assert found.faults
    for fault in found.faults:
        assert isinstance(fault, NAMED)
        said = str(fault)
        assert len(said) < LONGEST_MESSAGE and said.isprintable()
        assert fault.got and fault.wanted and fault.do and fault.exit_code == 1
    return found.faults[0].kind


def _refused_whole(data: bytes, folder: Path, capsys: Any) -> None:
    """Give an input to the command as a user would; nothing may be left of it."""
    file = folder / "adapter.toml"
    file.write_bytes(data)

    code = main.run(["agent", "register", "fuzzed", "--manifest", str(file)])

    shown = capsys.readouterr()
    assert (1, "") == (code, shown.out)
    assert shown.err.startswith(f"kt: {file}") or shown.err.startswith("kt: incompatible adapter contract")
    assert 1 == shown.err.count("\n")
    assert [file] == list(folder.iterdir())


def _fuzz(seed: int, count: int, folder: Path, capsys: Any) -> tuple[Counter[str], float]:
    mutations = Mutations(seed)
    outcomes: Counter[str] = Counter()
    longest_s = 0.0
    refused = 0
    for number in range(count):
        data = mutations.input(number)
        signal.setitimer(signal.ITIMER_PROF, HANGS_CPU_S)
        begin_s = time.thread_time()
        try:
            outcome = _judged(data)
            refused += outcome != "accepted"
            if outcome != "accepted" and refused % REGISTER_EVERY == 0:
                _refused_whole(data, folder, capsys)
        except BaseException as error:
            raise AssertionError(f"KT_SEED={seed}, input {number}: {data!r}") from error
        took_s = time.thread_time() - begin_s
        longest_s = max(longest_s, took_s)
        assert took_s < LONGEST_CPU_S, f"KT_SEED={seed}, input {number} took {took_s:.2f} s: {data!r}"
        outcomes[outcome] += 1
        if not (number + 1) % TELL_EVERY:
            _tell(capsys, f"KT_SEED={seed}: {number + 1} of {count} manifests so far")
    return outcomes, longest_s


def _run(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Counter[str]:
    # The state directory lies where it would be seen: beside the only file that may be there.
    monkeypatch.setenv("KTESIO_STATE_DIR", str(tmp_path / "state"))
    seed = int(os.environ.get("KT_SEED", random.SystemRandom().randrange(1 << 32)))
    begin_s = time.process_time()

    outcomes, longest_s = _fuzz(seed, count, tmp_path, capsys)

    took_s = time.process_time() - begin_s
    kinds = ", ".join(f"{kind} {number}" for kind, number in outcomes.most_common())
    speed = f"{count / took_s:.0f} a CPU second, the longest {longest_s * 1000:.0f} ms"
    _tell(capsys, f"KT_SEED={seed}: {count} manifests, {speed}; {kinds}")
    return outcomes


def _tell(capsys: Any, sentence: str) -> None:
    with capsys.disabled():
        print(f"\n{sentence}", flush=True)


def test_three_thousand_inputs_are_judged_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, alarmed: None
) -> None:
    outcomes = _run(SHORT, tmp_path, monkeypatch, capsys)

    # Mutations that reached one kind only would say nothing of the others.
    wanted = {"accepted", "toml", "missing_section", "invalid_field", "unknown_key", "unknown_word"}
    assert wanted <= set(outcomes)


@pytest.mark.chaos
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_million_inputs_are_judged_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, alarmed: None
) -> None:
    outcomes = _run(LONG, tmp_path, monkeypatch, capsys)

    assert LONG == outcomes.total()


def test_an_input_follows_from_its_seed_and_number() -> None:
    assert Mutations(7).input(11) == Mutations(7).input(11)
    several = Mutations(7)
    assert len({several.input(number) for number in range(500)}) > 450
