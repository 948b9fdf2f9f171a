"""`metering_engine_observed`, `streamed_observed_metering`: all calls pass the gateway, and the ledger is exact.

The judge is the provider's own log.
"""

from kt_conformance.instance import Instance
from kt_conformance.provider_call import ProviderCall, totals
from kt_conformance.report import NotApplicable, SectionFailed
from kt_conformance.stage import WORK_S, Stage

FOLD_S = 5.0
PROBE_CALLS = 3


def check(stage: Stage) -> None:
    """Have the subject call, and compare."""
    _need_observed(stage)
    with stage.agent() as instance:
        stage.work(instance)
        stage.finish(instance)
        judge(stage, instance)


def check_streams(stage: Stage) -> None:
    """Have the subject ask for streams; where it never does, the probe does so under its adapter."""
    _need_observed(stage)
    stream = stage.subject.trial.stream
    with stage.agent(*(stream or ())) as instance:
        stage.work(instance)
        stage.finish(instance)
        judge(stage, instance)
        if any(call.stream for call in stage.rig.provider.calls()):
            return
    if stream is not None:
        raise SectionFailed(
            "got no streamed call, wanted one: [kt.test] stream says what makes the agent ask for streams"
        )
    if not stage.subject.probe_can_call:
        raise NotApplicable(
            "the subject asks for no stream ([kt.test] stream can say what makes it), and the kit's fake agent, which "
            "would in its place, needs metering.base_url in a variable"
        )
    stage.warn(
        "the subject asked for no stream: the fake agent did, under its adapter; [kt.test] stream can say how"
    )
    with stage.probe("--stream-calls", str(PROBE_CALLS)) as instance:
        stage.rig.provider.begin_anew()
        stage.work(instance)
        stage.finish(instance)
        judge(stage, instance)


def _need_observed(stage: Stage) -> None:
    if not stage.subject.observed:
        raise NotApplicable("the metering source is self-reported")
    if not stage.subject.led:
        raise SectionFailed(
            "got no rule for metering.base_url or metering.origin, wanted one: nothing tells the agent where to call"
        )


def judge(stage: Stage, instance: Instance) -> None:
    """Compare the provider's log with the ledger, once the subject has ended.

    Raises:
        SectionFailed: no call came; one came around the gateway, without its token, or unmeasured; or sums differ.
    """
    calls = stage.rig.provider.calls()
    refused = [call for call in instance.calls() if call.get("status") in (401, 403)]
    if refused:
        raise SectionFailed(
            f"got {len(refused)} calls that the listener refused with {refused[0].get('status')} "
            f"({refused[0].get('reason')}), wanted each with the token that metering.base_url or the key carries"
        )
    if not calls:
        raise SectionFailed(
            f"got no call at the listener within {WORK_S:g} s of a start, wanted one: the agent goes around its "
            f"base URL, or has nothing to do; [kt.test] can say what makes it work (args, say); {instance.last_words()}"
        )
    around = [call for call in calls if call.key != stage.rig.provider.key]
    if around:
        raise SectionFailed(
            f"got {len(around)} of {len(calls)} calls around the gateway, wanted all through it"
        )
    _measured(calls)
    _ledger(stage, instance, [call for call in calls if call.answered])


def _measured(calls: list[ProviderCall]) -> None:
    untold = [call for call in calls if call.answered and call.input_tokens is None]
    if untold:
        kind = "streams" if untold[0].stream else "calls"
        raise SectionFailed(
            f"got {len(untold)} {kind} without usage, wanted it in all: the agent forbids it "
            "(stream_options) or hides it"
        )


def _ledger(stage: Stage, instance: Instance, answered: list[ProviderCall]) -> None:
    wanted = (len(answered), *totals(answered))
    unfinished = len(stage.rig.provider.calls()) - len(answered)

    def counted() -> tuple[int, int, int]:
        exact = [call for call in instance.calls() if call["completeness"] == "exact"]
        given, made = (
            sum(int(call[name] or 0) for call in exact) for name in ("input_tokens", "output_tokens")
        )
        return len(exact), given, made

    stage.deadline.wait(lambda: counted() == wanted, within_s=FOLD_S)
    if (got := counted()) != wanted:
        raise SectionFailed(
            f"got {_told(got)} in the ledger, wanted {_told(wanted)}, which the provider served in full"
        )
    source = instance.usage()["sources"].get("engine-observed", {})
    sums = (source.get("input_tokens"), source.get("output_tokens"))
    if not unfinished and sums != wanted[1:]:
        raise SectionFailed(
            f"got totals of {sums[0]} and {sums[1]} tokens, wanted {wanted[1]} and {wanted[2]}"
        )
    if unfinished:
        stage.warn(f"{unfinished} calls were under way when the subject ended; they are of unknown usage")


def _told(figures: tuple[int, int, int]) -> str:
    return f"{figures[0]} exact calls of {figures[1]} input and {figures[2]} output tokens"
