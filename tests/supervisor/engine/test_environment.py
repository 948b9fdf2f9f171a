from kt_supervisor.engine import environment


def test_our_own_processes_get_no_secret_and_no_runs_identity() -> None:
    caller = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "sk",
        "KT_RUN": "r",
        "KT_INSTANCE": "i",
        "KT_FAILPOINT": "x",
        "KT_ENGINE_FAILPOINT": "y",
        "LC_ALL": "C",
    }

    assert {"PATH": "/bin", "KT_FAILPOINT": "x", "LC_ALL": "C"} == environment.for_our_processes(caller)
