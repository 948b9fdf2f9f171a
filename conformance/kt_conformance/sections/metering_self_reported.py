"""`metering_self_reported`: what the subject prints is well formed and true, and the ledger has each piece once."""

from kt_conformance import sentinels
from kt_conformance.instance import Instance
from kt_conformance.provider_call import totals
from kt_conformance.report import NotApplicable, SectionFailed
from kt_conformance.sentinels import Usage
from kt_conformance.stage import WORK_S, Stage

FOLD_S = 5.0


def check(stage: Stage) -> None:
    """Have it work; compare its lines with the ledger, and with what its provider served."""
    if stage.subject.observed:
        raise NotApplicable("the metering source is engine-observed")
    with stage.agent() as instance:
        stage.work(instance)
        stage.finish(instance)
        reports = _reports(instance)
        if not reports:
            raise SectionFailed(
                f"got no usage line within {WORK_S:g} s of a start, wanted one; say in [kt.test] what makes the agent "
                f"work (args, say); {instance.last_words()}"
            )
        _ledger(stage, instance, reports)
        _truth(stage, reports)
        calling = bool(stage.rig.provider.calls())
    if calling:
        _silence(stage)


def _reports(instance: Instance) -> list[Usage]:
    run = instance.run_id
    return sentinels.distinct(sentinels.read(instance.output(run=run, streams=("out",))))


def _ledger(stage: Stage, instance: Instance, reports: list[Usage]) -> None:
    given = sum(report.input_tokens for report in reports)
    made = sum(report.output_tokens for report in reports)
    wanted = (len(reports), given, made, "all")

    def counted() -> tuple[object, ...]:
        source = instance.usage()["sources"].get("self-reported", {})
        fields = ("events", "input_tokens", "output_tokens", "usage_known")
        return tuple(source.get(field) for field in fields)

    stage.deadline.wait(lambda: counted() == wanted, within_s=FOLD_S)
    if (got := counted()) != wanted:
        raise SectionFailed(
            f"got {_told(got)} in the ledger, wanted {_told(wanted)}, which the subject's lines add up to"
        )


def _told(figures: tuple[object, ...]) -> str:
    events, given, made, known = figures
    return f"{events} events of {given} input and {made} output tokens ({known} of it known)"


def _truth(stage: Stage, reports: list[Usage]) -> None:
    got = (sum(report.input_tokens for report in reports), sum(report.output_tokens for report in reports))
    trial = stage.subject.trial
    calls = [call for call in stage.rig.provider.calls() if call.answered]
    if calls and any(call.input_tokens is None for call in calls):
        stage.warn(
            "the subject asked for streams without their usage, so that its figures could not be compared"
        )
        return
    if calls:
        wanted, by = totals(calls), "its provider served"
        if len(reports) != len(calls):
            raise SectionFailed(f"got {len(reports)} reports of {len(calls)} calls, wanted one of each call")
    elif trial.input_tokens is not None and trial.output_tokens is not None:
        wanted, by = (trial.input_tokens, trial.output_tokens), "[kt.test] reports says"
    else:
        stage.warn(
            "the subject called no provider of the kit, and [kt.test] reports says no totals: its figures are well "
            "formed, and nothing shows that they are true"
        )
        return
    if got != wanted:
        raise SectionFailed(
            f"got reports of {got[0]} input and {got[1]} output tokens, wanted {wanted[0]} and {wanted[1]}, as {by}"
        )


def _silence(stage: Stage) -> None:
    """A provider that says nothing of usage leaves nothing to report."""
    with stage.agent() as instance:
        stage.rig.provider.begin_anew()
        stage.rig.provider.keep_usage_silent()
        stage.work(instance)
        stage.finish(instance)
        if not stage.rig.provider.calls():
            stage.warn("the subject made no call a second time: what it does without usage was not seen")
        elif reports := _reports(instance):
            raise SectionFailed(
                f"got {len(reports)} reports where the provider said nothing of usage, wanted none: it is not known"
            )
