from pathlib import Path

from kt_ledger.layout import StateLayout, journal_segment

STATE = StateLayout(Path("/s"))


def test_segments_are_numbered_from_one_in_order_of_their_names() -> None:
    run = STATE.run("r")

    assert Path("/s/runs/r/out-000001.log") == run.segment("out", 1)
    assert Path("/s/runs/r/err-000012.idx") == run.index("err", 12)
    assert Path("/s/gateway/journal/g/000003.ktj") == journal_segment(STATE.gateway.journal("g"), 3)


def test_no_two_files_share_a_place() -> None:
    run, gateway = STATE.run("r"), STATE.gateway
    files = [
        *(run.lock, run.record, run.exit, run.socket, run.keeper_log, run.stdin, run.segment("out", 1)),
        *(gateway.lock, gateway.admin, gateway.lend, gateway.log, gateway.record, gateway.journals),
        *(
            STATE.engine_lock,
            STATE.engine_record,
            STATE.engine_stopped,
            STATE.engine_socket,
            STATE.engine_log,
        ),
        *(STATE.database, STATE.secrets, STATE.home("a")),
    ]

    assert len(files) == len(set(files))
    assert all(file.is_relative_to(STATE.root) for file in files)
