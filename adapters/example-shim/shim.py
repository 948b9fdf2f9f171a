#!/usr/bin/env python3
"""A shim: starts an agent that reports no usage, reads the log that it keeps, and reports for it.

    shim.py --log transcript.jsonl -- agent --its arguments

Copy it, and rewrite `call` for the log of your agent: everything else is the same for any log of one JSON object a
line. Unix, Python 3.9 or later, standard library only.

What it keeps to:

* The sequence of a report is the ordinal of the call among those of this Run, from 1. A shim that is restarted within
  the Run counts the same calls again, with the same numbers, and the engine counts each once.
* A call whose usage the log does not tell is not reported; its number stays free, and the engine shows the sum as a
  lower bound. A line that cannot be read may have been a call, so it takes a number as well. Nothing becomes 0.
* Calls of earlier Runs in the same log are not this Run's.
* A line counts once it has its end; the last one also when the agent has ended.
* A log that is renamed away is read to its end first, one that is cut short is read again from its start.
* What the agent prints passes through as it is; reports stand between its lines. Standard input and error are the
  agent's own. Signals go on to the agent; the shim ends as the agent did, by the same code or signal.

Beside the log lies `LOG.shim`: where this Run's calls begin, how far it was read, and which number was reported
last.
"""

import argparse
import json
import os
import resource
import select
import signal
import stat
import subprocess
import sys
import time

PASSED_ON = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
LOOK_S = 0.1  # how often the log is looked at
QUIET_S = 1.0  # an unfinished line of the agent (a prompt) that rests so long is ended, so that reports go on
LINE_LIMIT = 16 * 1024 * 1024  # of a longer line nothing is kept


def call(message):
    """Rewrite this one. Return what one object of the log says about a call of a model.

    None: it is no call. An empty dict: it is a call, and its usage is not known. Otherwise the counts, of which
    `input_tokens` includes what came from a cache.
    """
    if message.get("role") != "assistant":
        return None
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return {}
    counts = {"input_tokens": usage.get("prompt_tokens"), "output_tokens": usage.get("completion_tokens")}
    if not all(type(count) is int and count >= 0 for count in counts.values()):
        return {}  # half of the truth is not the truth
    return counts


def told(text):
    """Say something to whoever reads the agent's standard error."""
    sys.stderr.write("shim: " + text + "\n")
    sys.stderr.flush()


class Place:
    """Where this Run's calls begin in the log, kept in a file beside it so that a restarted shim finds it again."""

    def __init__(self, log, run):
        self.path = log + ".shim"
        self.facts = {"run": run, "file": None, "offset": 0, "read": 0, "number": 0, "reported": 0}

    def found(self):
        """Read what an earlier shim of the same Run has left; tell whether there was something."""
        try:
            with open(self.path, encoding="utf-8") as stream:
                facts = json.load(stream)
        except (OSError, ValueError):
            return False
        same = (
            isinstance(facts, dict)
            and facts.keys() == self.facts.keys()
            and facts["run"] == self.facts["run"]
        )
        if same and self.facts["run"]:
            self.facts = facts
            return True
        return False

    def keep(self, **changed):
        """Write it down, whole or not at all; where that cannot be, only a restarted shim will miss it."""
        self.facts.update(changed)
        try:
            os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
            with open(self.path + ".new", "w", encoding="utf-8") as stream:
                json.dump(self.facts, stream)
            os.replace(self.path + ".new", self.path)
        except OSError as error:
            told(f"cannot write {self.path}: {error.strerror}")


class Log:
    """Follows the log over renaming and cutting; gives reports."""

    def __init__(self, path, run):
        self.path = path
        self.stream = None
        self.unfinished = b""
        self.too_long = False
        self.place = Place(path, run)
        self._begin()

    def _begin(self):
        if not self.place.found():
            self._open()
            size = os.fstat(self.stream.fileno()).st_size if self.stream else 0
            self._start_at(size, number=0)
        elif not self._open(self.place.facts["file"]) or self._size() < self.place.facts["read"]:
            # The file in which this Run began is gone or was cut: calls may have been in it. One number is left out,
            # so that the sum is shown as a lower bound.
            told("part of the log is gone; calls in it are not counted")
            self._open()
            self._start_at(0, number=max(self.place.facts["number"], self.place.facts["reported"]) + 1)
        else:
            self._start_at(self.place.facts["offset"], number=self.place.facts["number"])

    def _start_at(self, offset, number):
        self.number = number
        self.unfinished, self.too_long = b"", False
        if self.stream:
            self.stream.seek(offset)
        # Without a file yet, what it will be is not known: whatever comes is this Run's.
        self.place.keep(file=self._identity(), offset=offset, read=offset, number=number)

    def _identity(self):
        if not self.stream:
            return None
        facts = os.fstat(self.stream.fileno())
        return [facts.st_dev, facts.st_ino]

    def _size(self):
        return os.fstat(self.stream.fileno()).st_size if self.stream else 0

    def _open(self, identity=None):
        """Open the log, or the file of this identity, which may have been renamed; tell whether it is there."""
        folder = os.path.dirname(self.path) or "."
        names = [self.path]
        if identity is not None and os.path.isdir(folder):
            names += [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        if self.stream:
            self.stream.close()
        self.stream = None
        for name in names:
            try:
                there = os.stat(name)
                # Looked at before it is opened: to open a FIFO would wait for its other end.
                if stat.S_ISREG(there.st_mode) and identity in (None, [there.st_dev, there.st_ino]):
                    self.stream = open(name, "rb", buffering=0)  # noqa: SIM115 (it stays open)
                    return True
            except OSError:
                continue
        return identity is None and self.place.facts["file"] is None

    def reports(self, over=False):
        """Return the reports of what has been added; `over`: nobody will add to an unfinished line."""
        numbered = []
        if self.stream is None and os.path.exists(self.path) and self._open():
            self._start_at(0, self.number)
        while self.stream is not None:
            if self._size() < self.stream.tell():
                told("the log was cut; it is read again from its start")
                self._start_at(0, self.number)
            numbered += self._added()
            if not self._renamed():
                break
            numbered += self._last_line()
            self._open()
            self._start_at(0, self.number)
        if over:
            numbered += self._last_line()
        if self.number > self.place.facts["reported"]:
            # Before it is printed: a number that was kept and not printed is a gap, which the engine shows; one that
            # was printed and not kept could be given to another call, after a restart.
            self.place.keep(reported=self.number, read=self.stream.tell() if self.stream else 0)
        return numbered

    def _renamed(self):
        try:
            there = os.stat(self.path)
        except OSError:
            return False  # renamed, and not made anew yet: the agent may still write into the old one
        return [there.st_dev, there.st_ino] != self._identity()

    def _added(self):
        found = []
        while data := self.stream.read(1 << 16):
            *whole, rest = (self.unfinished + data).split(b"\n")
            for line in whole:
                found += self._report(line)
                self.too_long = False
            if len(rest) > LINE_LIMIT:
                self.too_long, rest = True, b""
            self.unfinished = rest
        return found

    def _last_line(self):
        line, self.unfinished = self.unfinished, b""
        found = self._report(line) if line or self.too_long else []
        self.too_long = False
        return found

    def _report(self, line):
        if not line.strip() and not self.too_long:
            return []
        counts = {}
        try:
            message = json.loads(line) if not self.too_long else None
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict):
            counts = call(message)
            if counts is None:
                return []
        else:
            told("a line of the log could not be read; it may have been a call")
        self.number += 1
        if not counts:
            return []
        return [b"KTESIO_USAGE " + json.dumps({"sequence": self.number, **counts}).encode() + b"\n"]


class Output:
    """Passes on what the agent prints, and puts reports between its lines."""

    def __init__(self):
        self.waiting = []
        self.within_line = False
        self.printed_s = time.monotonic()

    def passed_on(self, data):
        """Print what the agent has printed; reports go behind its last line end."""
        end = data.rfind(b"\n") + 1
        if end and self.waiting:
            written(data[:end] + b"".join(self.waiting) + data[end:])
            self.waiting = []
        else:
            written(data)
        self.within_line = data[-1:] != b"\n"
        self.printed_s = time.monotonic()

    def report(self, lines, over=False):
        """Print reports, at once where the agent is between two lines or has rested within one."""
        self.waiting += lines
        rests = time.monotonic() - self.printed_s > QUIET_S
        if self.waiting and (over or rests or not self.within_line):
            written((b"\n" if self.within_line else b"") + b"".join(self.waiting))
            self.waiting, self.within_line = [], False


def written(data):
    """Write everything to standard output."""
    while data:
        data = data[os.write(1, data) :]


def followed(agent, pipe, log, output):
    """Pass on and report until the agent has ended."""
    while True:
        ended = agent.poll() is not None
        ready, _, _ = select.select([] if pipe.closed else [pipe], [], [], 0 if ended else LOOK_S)
        if ready:
            data = os.read(pipe.fileno(), 1 << 16)
            if data:
                output.passed_on(data)
            else:
                pipe.close()
        elif ended:
            # What a process that outlives the agent goes on printing is nobody's report.
            output.report(log.reports(over=True), over=True)
            return
        output.report(log.reports())


def started(command):
    """Start the agent; return it and the reading end of its standard output. Signals reach it from the first on."""
    agents, early = [], []

    def pass_on(number, _frame):
        if not agents:
            early.append(number)
        elif agents[0].poll() is None:
            agents[0].send_signal(number)

    for name in PASSED_ON:
        if (
            signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN
        ):  # what is ignored stays so, for both
            signal.signal(getattr(signal, name), pass_on)
    pipe, end = os.pipe()
    agents.append(subprocess.Popen(command, stdout=end))
    os.close(end)
    for number in early:
        agents[0].send_signal(number)
    return agents[0], os.fdopen(pipe, "rb", buffering=0)


def end_like(code):
    """End as the agent did: `code` as of `Popen.returncode`, below 0 for a signal."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the agent's own core is enough
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)


def main():
    """Run the agent and report for it."""
    parser = argparse.ArgumentParser(description="Run an agent and report the usage that its log tells.")
    parser.add_argument(
        "--log", required=True, help="the file that the agent appends to, one JSON object a line"
    )
    parser.add_argument(
        "command", nargs="+", metavar="PROGRAM", help="behind --: the agent and its arguments"
    )
    wanted = parser.parse_args()
    log = Log(wanted.log, os.environ.get("KT_RUN", ""))
    try:
        agent, pipe = started(wanted.command)
    except OSError as error:
        told(f"cannot start {wanted.command[0]}: {error.strerror}")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)
    try:
        followed(agent, pipe, log, Output())
    except BrokenPipeError:
        pipe.close()  # nobody reads any more: the agent learns it as it would without a shim
    end_like(agent.wait())


if __name__ == "__main__":
    main()
