"""What a section has to work with: the subject, the rig, its time; and how the subject is got to work."""

import contextlib
import secrets
import string
from collections.abc import Iterator, Mapping

from kt_client.errors import KtError
from kt_conformance import processes, report
from kt_conformance.deadline import Deadline
from kt_conformance.instance import Instance
from kt_conformance.report import NotApplicable, SectionFailed
from kt_conformance.rig import Rig
from kt_conformance.subject import Subject
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.contract.trial import NONCE

MODEL = "tck-model"

WORK_S = 10.0
"""How long the subject may take until its work shows."""

CALM_S = 0.4
BUSY_S = 3.0
SETTLE_S = 5.0
"""Work is over when nothing has come for `CALM_S`, or there is enough of it after `BUSY_S`."""

ENOUGH = 50


class Stage:
    """One section's stage. `warnings` and `driven_by` become part of its result."""

    def __init__(self, subject: Subject, rig: Rig, deadline: Deadline) -> None:
        self.subject = subject
        self.rig = rig
        self.deadline = deadline
        self.warnings: list[str] = []
        self.driven_by: str | None = None
        rig.kt.deadline = deadline
        rig.provider.begin_anew()

    def warn(self, sentence: str) -> None:
        """Have something said that is no failure."""
        self.warnings.append(sentence)

    def need_eyes(self) -> None:
        """Raise NotApplicable where the system does not show what the kit must see."""
        if not processes.visible():
            raise NotApplicable("this system does not show processes to the kit (no /proc)")

    # -- agents ------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def agent(self, *more: str) -> Iterator[Instance]:
        """Give the subject, registered, with its provider set; it is gone afterwards."""
        self.driven_by = report.SUBJECT
        with self._registered(self.subject.itself(*more)) as instance:
            yield instance

    @contextlib.contextmanager
    def probe(self, *flags: str) -> Iterator[Instance]:
        """Give the fake agent under the subject's adapter."""
        self.driven_by = report.PROBE
        with self._registered(self.subject.probe(*flags)) as instance:
            yield instance

    @contextlib.contextmanager
    def _registered(self, adapter: Adapter) -> Iterator[Instance]:
        self.rig.clear()
        instance = Instance(self.rig.kt, adapter, self.deadline)
        if self.subject.observed or self.subject.led:
            instance.set("metering.upstream_base_url", self.rig.provider.url)
            instance.set("metering.upstream_api_key", self.rig.provider.key)
        for key, value in self._settings().items():
            instance.set(key, value)
        try:
            yield instance
        finally:
            self.rig.provider.release()

    def _settings(self) -> Mapping[str, str]:
        """Return what is set for the subject's sake: some agents do not start without a model."""
        model = {"model": MODEL} if self.subject.rules_for("model") else {}
        return model | dict(self.subject.trial.settings)

    def start(self, instance: Instance, *, advice: str = "") -> None:
        """Start it, and keep one that ends with its work from ending: its provider lets it wait.

        Args:
            instance: what is started.
            advice: what to say further where it does not start.

        Raises:
            SectionFailed: it does not start, with what to do about a program that is not there.
        """
        if self.subject.trial.ends_when_done:
            self.rig.provider.hold()
        try:
            instance.start()
        except KtError as error:
            raise SectionFailed(
                f"the subject does not start: {error}{self._remedy(str(error))}{advice}"
            ) from error
        self.settle(instance)

    def settle(self, instance: Instance) -> None:
        """Return once it has come up: its processes have used no processor time for a moment, or it is always busy.

        An engine calls an agent running before a slow machine has loaded it: what is done to it then, it never felt.
        """
        if not processes.visible():
            return
        busy = Deadline(SETTLE_S)
        used = instance.used_ticks()
        while busy.left_s:
            calm = Deadline(CALM_S)
            if not calm.wait(lambda before=used: instance.used_ticks() != before, within_s=CALM_S):  # type: ignore[misc]
                return
            used = instance.used_ticks()

    def _remedy(self, message: str) -> str:
        start = self.subject.adapter.start
        if start is None or "executable not found" not in message:
            return ""
        return (
            f"; install {start.exec}, or name a stand-in: kt adapter test PATH --exec PROGRAM --arg ARGUMENT"
        )

    # -- work --------------------------------------------------------------------------------------------------
    def nonce(self) -> str:
        """Return a word that nobody has said before."""
        return "tck" + "".join(secrets.choice(string.ascii_lowercase) for _ in range(12))

    def urge(self, instance: Instance) -> None:
        """Say what makes it work, where its adapter declares something to say."""
        if self.subject.trial.say is not None:
            instance.send(self.subject.trial.say.replace(NONCE, self.nonce()))

    def signs(self, instance: Instance) -> int:
        """Return how much has come of its work so far: calls at the provider or refused on the way, and usage lines."""
        lines = [line for line in instance.output(streams=("out",)) if "KTESIO_USAGE" in line]
        refused = [call for call in instance.calls() if call.get("status") in (401, 403)]
        return len(self.rig.provider.calls()) + len(refused) + len(lines)

    def work(self, instance: Instance) -> int:
        """Start it, get it to work, and return how many signs of that there are once it is calm; 0 for none."""
        self.start(instance)
        self.urge(instance)
        self.rig.provider.release()
        return self.let_work(instance)

    def let_work(self, instance: Instance) -> int:
        """Return how many signs of work there are once it is calm."""
        if not self.deadline.wait(lambda: self.signs(instance), within_s=WORK_S):
            return 0
        busy = Deadline(BUSY_S)
        seen = self.signs(instance)
        while busy.left_s and seen < ENOUGH:
            before = seen
            if not self.deadline.wait(lambda known=before: self.signs(instance) > known, within_s=CALM_S):  # type: ignore[misc]
                break
            seen = self.signs(instance)
        return seen

    def stays(self, instance: Instance, *, for_s: float) -> None:
        """See it go on running for so long; raises SectionFailed where it does not."""

        def ended() -> str | None:
            if (state := instance.state) == "running":
                return None
            return (
                f"got a subject that was {state} without having been asked to, wanted it to run until it is stopped; "
                f"{instance.last_words()}"
            )

        self.deadline.watch(ended, for_s=for_s)

    def finish(self, instance: Instance) -> None:
        """Stop it, or see it end by itself where it does that."""
        if self.subject.trial.ends_when_done and self.driven_by == report.SUBJECT:
            instance.wait_for("stopped", within_s=WORK_S)
            return
        self.stays(instance, for_s=0)
        instance.stop()
