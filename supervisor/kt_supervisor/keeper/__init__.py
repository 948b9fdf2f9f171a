"""The keeper: one small process per Run that outlives the engine. Standard library and `kt_ledger`'s pure half only.

Started as `python -I -S <this folder>/__main__.py`, in a session of its own, with its specification (one JSON object,
protocol 1) on standard input, which the engine then closes:

    {protocol, run_id, instance_id, name, state_dir, argv, env, cwd, interactive,
     engine_command, engine_env, lend_from, segment_limit_bytes, gateway_grace_s?, sweep_grace_s?,
     free_floor_bytes?, limits?, room?, cgroup_parent?, takeover?}

`specification.build` makes it. `argv[0]` is already an absolute path. `lend_from` is the gateway's lend socket or null:
the keeper borrows the instance's listening socket there before it spawns the agent. `gateway_grace_s` (60): how long
connections may queue while no gateway uses that socket, before they are reset. `sweep_grace_s` (1): how long what is
left of the tree may take to end once the agent has ended by itself. Nothing of the specification is written to disk.

`free_floor_bytes` (64 MiB; 0: none): below it, looked at while output flows, the keeper stops reading the pipes and
freezes the tree until an eighth more is free. A stop lifts it. `cgroup_parent`: a cgroup v2 folder, writable and
without processes of its own, in which the agent gets the leaf `kt-<run id>`; the keeper stays outside and removes it
at the end. `limits`: {memory_bytes?, cpu_cores?, pids?, nofile?}, enforced by the leaf's memory.max, cpu.max and
pids.max for the whole tree, else by RLIMIT_DATA and RLIMIT_NOFILE for each process, else not: `run.json` says which.

`takeover`: {agent_pid, agent_start_ticks, out?, err?, pidfd?}: the agent lives (or has just ended), its keeper was
killed. Nothing is spawned. `out` and `err` are numbers of inherited descriptors, the read ends that "spares" gave;
`pidfd` one of the agent that was opened while it lived. Without the read ends the pipes are opened again through /proc,
which works while any process of the agent has them open. Output goes on at the end of the last segment. The environment
must be that of the Run: KT_RUN finds processes that have left the agent's session. The listening socket is borrowed
again, once a second until somebody lends it. Ends with 3 while the recorded keeper or another successor lives.

The folder `runs/<run id>/` exists (0700) before. The keeper ends with 0, or at once with 2 (specification or folder
unusable) or 3 (the Run's lock is taken), the reason then on its standard error. The agent gets descriptors 0, 1, 2 and,
as 3, the Run's lock.

Files, all in `runs/<run id>/` (`kt_ledger.layout`):

    run.json   {protocol, run_id, instance_id, keeper_pid, keeper_start_ticks, agent_pid, agent_start_ticks, pgid,
                boot_id, started_at_ns, limits: {memory|cpu|pids|nofile: "cgroup" | "rlimit" | "not enforced: why"},
                cgroup: path | null, pipes: {out, err: inode}, takeovers: count}
    exit.json  {protocol, run_id, code | null, signal | null, spawn_error | null, code_unknown: why | null,
                stop_asked, stop_command: {code, signal, timed_out, error} | null, forced, survivors: [pid...],
                oom_killed: bool | null, gaps: [sentence...], ended_at_ns,
                out: {segment, offset}, err: {segment, offset}}
    commands.log  what commands beside the agent said, 0600; begun anew when it is over 256 KiB

`run.json` is there before the agent's first instruction; after a failed exec it stands beside an `exit.json` with
`spawn_error`, a sentence. `exit.json` appears atomically, after both streams have been drained and the tree is empty
(or its survivors are named); the ends of both logs are in it. `forced`: something had to be killed. `code_unknown`: why
neither code nor signal is known of an agent that did start. `oom_killed`: the kernel killed something of the tree for
its memory limit; null where no cgroup counts that. `gaps`: what of the output may be missing after a takeover.

Control: `keeper.sock`, lines of JSON. Any connection may ask:

    {"op": "status"}                        -> {ok, protocol, run_id, instance_id, keeper_pid, agent_pid, phase,
                                               paused, disk_low, stdin: "open" | "closed" | "none", exit?}
    {"op": "lend", "instance": ID}          -> `kt_ledger.lending`
    {"op": "hello", "protocol": 1}          -> the answer of status; this connection is then the engine's: the keeper
                                               sends {"event": "output"} after it copied output (at most one per 20 ms),
                                               {"event": "started"}, {"event": "agent_exited"} (the main process has
                                               gone, the rest of its tree is ended next), {"event": "disk_low"},
                                               {"event": "disk_ok"}, {"event": "exited", ...exit.json} (also right after
                                               this answer, when it ended before)
    {"op": "spares"}                        -> {ok, streams: ["out", "err"]} with the open read ends of these attached
                                               (SCM_RIGHTS, non-blocking, shared): while somebody holds them, an agent
                                               whose keeper was killed gets no EPIPE. Read them only once it is dead
    {"op": "room", "segments": {"out": N, "err": M} | null}
                                            -> {ok}; no segment with a higher number is begun until told otherwise: the
                                               agent waits at its pipe. Lifted when no engine is there for five seconds
    {"op": "stop", "timeout_s": S, "command": {argv, env?}?}
                                            -> {ok}; TERM to the tree, CONT, wait until it is empty, then KILL until two
                                               scans find nothing; the result is in the exited event. The command, if
                                               any, runs first: TERM follows when it fails (code not 0), or after half
                                               of S. S = 0 kills at once, without the command. A stop thaws, and ends
                                               the commands that "run" began. Asked again, the earlier end counts
    {"op": "pause"}                         -> {ok, how: "cgroup" | "signals"} once every process of the tree stands
                                               still, enforced again every second; {ok: false, error} when within 2 s
                                               not all do (paused all the same, and tried again), or none is running
    {"op": "resume"}                        -> {ok}; whatever its own shell had stopped before stays stopped
    {"op": "run", "id": N, "argv": [...], "env": {...}?, "timeout_s": S}
                                            -> {ok}, and to this connection, when nothing of it is left, {"event":
                                               "ran", id, code | null, signal | null, timed_out, error | null,
                                               last_lines: at most 20}. argv[0] absolute; the agent's environment with
                                               `env` on top, its cwd, /dev/null as input, no cgroup or limits of the
                                               agent; not frozen by a pause. Killed with its tree at its time limit;
                                               what it leaves behind ends with it. At most 8 at once; not while stopping
    {"op": "eof"}                           -> {ok}; closes the keeper's ends of `in.fifo` and removes it: the agent
                                               reads end of file once every other writer has closed, too
    {"op": "release"}                       -> {ok}; after `exited`, the engine has folded everything: the keeper may go
                                               (it does once its last command is over)

Anything else is answered {ok: false, error}; after a line that is no request the connection is closed.

Where the Run's folder was deleted (not moved) and no engine is there, the keeper stops the agent and leaves: nobody
could reach it any more.

phase is "borrowing", "spawning", "running", "stopping" or "exited". When the engine's connection ends, or none has come
for five seconds, and `engine.stopped` does not exist, the keeper starts the engine with `engine_command` (back-off
0.2 s doubling to 30 s; the engine's own lock elects one of many). A keeper whose agent has exited stays until it is
released, so that no exit is lost, but asks no engine back to life when the exit record is on disk: it just leaves then.
"""

PROTOCOL = 1
