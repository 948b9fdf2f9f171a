"""Where everything lives in a state directory, said once for all rooms.

```
<state>/                          0700; every file in it 0600
  engine.lock                     flock: one engine per state directory
  engine.json                     {pid, start_ticks, boot_id, version, started_at_ns}, written by the engine that runs
  engine.stopped                  present while the engine was stopped on purpose: keepers stay quiet
  engine.waking                   flock: the keeper that is bringing a dead engine back
  engine.sock  engine.log
  ledger.db                       SQLite: the only file that only the engine opens
  config.toml  secrets.toml       the operator's
  environments/<instance id>.json the variables of its last start, for restarts without a caller
  started/<instance id>.json      the settings of its last start: its overrides, and what `config diff` compares with
  removals/<instance id>.json     a removal that has begun: {name, delete, at_ns, moved}
  agents/<name>/                  Agent Home, the agent's working directory: config.toml, rendered files
  runs/<run id>/                  lock, run.json, exit.json, keeper.sock, keeper.log, in.fifo,
                                  out-000001.log (+ .idx), err-000001.log (+ .idx), ...
  gateway/                        lock (of the gateway that accepts), admin.sock, lend.sock, gateway.log, gateway.json
  gateway/journal/<incarnation>/  lock (flock for life), 000001.ktj, 000002.ktj, ...
```

Paths only: makes, opens and reads nothing.
"""

from dataclasses import dataclass
from pathlib import Path

SEGMENT_DIGITS = 6
JOURNAL_SUFFIX = ".ktj"


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The files of one Run; `stream` is "out" or "err"."""

    root: Path

    @property
    def lock(self) -> Path:
        """Flock held by the keeper and inherited by the agent's tree: held while anything of the Run lives."""
        return self.root / "lock"

    @property
    def record(self) -> Path:
        """Who runs: written by the keeper once the agent was spawned (`keeper.md` has the fields)."""
        return self.root / "run.json"

    @property
    def exit(self) -> Path:
        """How it ended: written by the keeper, atomically, once the agent was reaped and its tree is empty."""
        return self.root / "exit.json"

    @property
    def socket(self) -> Path:
        """The keeper's control socket."""
        return self.root / "keeper.sock"

    @property
    def keeper_log(self) -> Path:
        """What the keeper itself had to say."""
        return self.root / "keeper.log"

    @property
    def stdin(self) -> Path:
        """The FIFO behind the agent's standard input, where it has one."""
        return self.root / "in.fifo"

    def segment(self, stream: str, number: int) -> Path:
        """Return the file of one log segment; numbers begin at 1."""
        return self.root / f"{stream}-{number:0{SEGMENT_DIGITS}d}.log"

    def index(self, stream: str, number: int) -> Path:
        """Return the time index of one log segment: 16-byte pairs (offset, wall-clock ns), little-endian u64."""
        return self.root / f"{stream}-{number:0{SEGMENT_DIGITS}d}.idx"


@dataclass(frozen=True, slots=True)
class GatewayLayout:
    """The files of the gateway."""

    root: Path

    @property
    def lock(self) -> Path:
        """Flock of the gateway that accepts connections: two never serve one state directory."""
        return self.root / "lock"

    @property
    def admin(self) -> Path:
        """The admin socket (HTTP, `messages`)."""
        return self.root / "admin.sock"

    @property
    def lend(self) -> Path:
        """The socket that lends listening sockets to keepers (`lending`)."""
        return self.root / "lend.sock"

    @property
    def log(self) -> Path:
        """The gateway's own log."""
        return self.root / "gateway.log"

    @property
    def record(self) -> Path:
        """{pid, start_ticks, boot_id, version, incarnation, started_at_ns} of the gateway that runs."""
        return self.root / "gateway.json"

    @property
    def journals(self) -> Path:
        """The folder of all incarnations' journals."""
        return self.root / "journal"

    def journal(self, incarnation: str) -> Path:
        """Return the folder of one incarnation's segments."""
        return self.journals / incarnation


@dataclass(frozen=True, slots=True)
class StateLayout:
    """The files of one state directory."""

    root: Path

    @property
    def engine_lock(self) -> Path:
        """Flock of the engine: decides among many that start at once."""
        return self.root / "engine.lock"

    @property
    def engine_record(self) -> Path:
        """Who the engine is."""
        return self.root / "engine.json"

    @property
    def engine_stopped(self) -> Path:
        """The marker of a stop on purpose."""
        return self.root / "engine.stopped"

    @property
    def engine_waking(self) -> Path:
        """Flock of the one keeper that brings a dead engine back."""
        return self.root / "engine.waking"

    @property
    def engine_socket(self) -> Path:
        """The engine's control socket (HTTP)."""
        return self.root / "engine.sock"

    @property
    def engine_log(self) -> Path:
        """The engine's own log."""
        return self.root / "engine.log"

    @property
    def database(self) -> Path:
        """The SQLite ledger."""
        return self.root / "ledger.db"

    @property
    def secrets(self) -> Path:
        """The operator's secrets: 0600 or refused."""
        return self.root / "secrets.toml"

    @property
    def gateway(self) -> GatewayLayout:
        """The gateway's files."""
        return GatewayLayout(self.root / "gateway")

    @property
    def runs(self) -> Path:
        """The folder of all Runs."""
        return self.root / "runs"

    def run(self, run_id: str) -> RunLayout:
        """Return the files of one Run."""
        return RunLayout(self.runs / run_id)

    def environment(self, instance_id: str) -> Path:
        """Return the file that keeps the environment of an instance's last start."""
        return self.root / "environments" / f"{instance_id}.json"

    def started(self, instance_id: str) -> Path:
        """Return the file that keeps with which settings an instance was last started."""
        return self.root / "started" / f"{instance_id}.json"

    @property
    def removals(self) -> Path:
        """The folder of the removals under way."""
        return self.root / "removals"

    def removal(self, instance_id: str) -> Path:
        """Return the file that says that an instance is being removed."""
        return self.removals / f"{instance_id}.json"

    def removed_home(self, instance_id: str) -> Path:
        """Return where the Agent Home of a removed instance waits to be deleted."""
        return self.root / "agents" / f".removed-{instance_id}"

    def removed_runs(self, instance_id: str) -> Path:
        """Return where the Runs of a removed instance wait to be deleted."""
        return self.runs / f".removed-{instance_id}"

    @property
    def fleet_config(self) -> Path:
        """The operator's settings for all instances."""
        return self.root / "config.toml"

    @property
    def homes(self) -> Path:
        """The folder of all Agent Homes."""
        return self.root / "agents"

    def home(self, name: str) -> Path:
        """Return the Agent Home of an instance."""
        return self.homes / name


def journal_segment(folder: Path, number: int) -> Path:
    """Return the file of one journal segment; numbers begin at 1."""
    return folder / f"{number:0{SEGMENT_DIGITS}d}{JOURNAL_SUFFIX}"
