"""The keeper: one small process per Run that outlives the engine. Standard library and `kt_ledger`'s pure half only.

Started as `python -I -S <this folder>/__main__.py`, in a session of its own, with its specification (one JSON object,
protocol 1) on standard input, which the engine then closes:

    {protocol, run_id, instance_id, name, state_dir, argv, env, cwd, interactive,
     engine_command, engine_env, lend_from, segment_limit_bytes, gateway_grace_s?, sweep_grace_s?}

`specification.build` makes it. `argv[0]` is already an absolute path. `lend_from` is the gateway's lend socket or null:
the keeper borrows the instance's listening socket there before it spawns the agent. `gateway_grace_s` (60): how long
connections may queue while no gateway uses that socket, before they are reset. `sweep_grace_s` (1): how long what is
left of the tree may take to end once the agent has ended by itself. Nothing of the specification is written to disk.

The folder `runs/<run id>/` exists (0700) before. The keeper ends with 0, or at once with 2 (specification or folder
unusable) or 3 (the Run's lock is taken), the reason then on its standard error. The agent gets descriptors 0, 1, 2 and,
as 3, the Run's lock.

Files, all in `runs/<run id>/` (`kt_ledger.layout`):

    run.json   {protocol, run_id, instance_id, keeper_pid, keeper_start_ticks, agent_pid, agent_start_ticks, pgid,
                boot_id, started_at_ns}
    exit.json  {protocol, run_id, code | null, signal | null, spawn_error | null, stop_asked, forced,
                survivors: [pid...], ended_at_ns, out: {segment, offset}, err: {segment, offset}}

`run.json` is there before the agent's first instruction; after a failed exec it stands beside an `exit.json` with
`spawn_error`, a sentence. `exit.json` appears atomically, after both streams have been drained and the tree is empty
(or its survivors are named); the ends of both logs are in it. `forced`: something had to be killed.

Control: `keeper.sock`, lines of JSON. Any connection may ask:

    {"op": "status"}                        -> {ok, protocol, run_id, keeper_pid, agent_pid, phase, exit?}
    {"op": "lend", "instance": ID}          -> `kt_ledger.lending`
    {"op": "hello", "protocol": 1}          -> the answer of status; this connection is then the engine's: the keeper
                                               sends {"event": "output"} after it copied output (at most one per 20 ms),
                                               {"event": "started"}, {"event": "agent_exited"} (the main process has
                                               gone, the rest of its tree is ended next), {"event": "exited",
                                               ...exit.json} (also right after this answer, when it ended before)
    {"op": "spares"}                        -> {ok, streams: ["out", "err"]} with the open read ends of these attached
                                               (SCM_RIGHTS, non-blocking, shared): while somebody holds them, an agent
                                               whose keeper was killed gets no EPIPE. Read them only once it is dead
    {"op": "stop", "timeout_s": S}          -> {ok}; TERM to the group, CONT, wait until the tree is empty, then KILL
                                               until two scans find nothing; the result is in the exited event
    {"op": "release"}                       -> {ok}; after `exited`, the engine has folded everything: the keeper may go

Anything else is answered {ok: false, error}; after a line that is no request the connection is closed.

phase is "borrowing", "spawning", "running", "stopping" or "exited". When the engine's connection ends, or none has come
for five seconds, and `engine.stopped` does not exist, the keeper starts the engine with `engine_command` (back-off
0.2 s doubling to 30 s; the engine's own lock elects one of many). A keeper whose agent has exited stays until it is
released, so that no exit is lost, but asks no engine back to life when the exit record is on disk: it just leaves then.
"""

PROTOCOL = 1
