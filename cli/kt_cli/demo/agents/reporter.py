"""An agent that counts for itself: it prints what it used, one line a piece of work.

Works on five pieces. It prints the third line twice, as a program does that was not sure whether the first got through,
and gets one wrong. Standard library only.
"""
# ruff: noqa: T201 (an agent prints)

import json
import signal
import time

MARK = "KTESIO_USAGE"
PACE_S = 0.4


def report(sequence: int, input_tokens: int, output_tokens: int) -> None:
    """Print one usage line."""
    figures = {"sequence": sequence, "input_tokens": input_tokens, "output_tokens": output_tokens}
    print(f"{MARK} {json.dumps(figures)}", flush=True)


for piece in range(5):
    print(f"working on piece {piece + 1} of 5", flush=True)
    time.sleep(PACE_S)
    report(piece, 300 + 10 * piece, 40 + piece)
    if piece == 2:
        report(piece, 300 + 10 * piece, 40 + piece)
    if piece == 3:
        print(f'{MARK} {{"sequence": 3, "input_tokens": "many"}}', flush=True)

print("waiting for work", flush=True)
signal.pause()
