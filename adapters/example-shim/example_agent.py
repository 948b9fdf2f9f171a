#!/usr/bin/env python3
"""A small agent that knows nothing of kt: it answers each line that it reads, and keeps a log of what was said.

    example_agent.py --log transcript.jsonl

The log has one JSON object a line, as many agents have it. What the provider tells about usage stands beside the
answer; for a line that begins with "offline", which a model on this machine answers, there is nothing.
"""

import argparse
import json
import sys


def append(log, **message):
    """Add one message to the log."""
    log.write(json.dumps(message) + "\n")
    log.flush()


def answered(task):
    """Return the answer, and what the provider tells about usage, if anything."""
    words = task.split()
    answer = " ".join(reversed(words))
    if words[:1] == ["offline"]:
        return answer, None
    return answer, {"prompt_tokens": len(task), "completion_tokens": len(answer.split())}


def main():
    """Answer until there is nothing more to read; a line of "exit N" ends with code N."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", required=True)
    wanted = parser.parse_args()
    for line in sys.stdin:
        task = line.strip()
        if task.startswith("exit"):
            sys.exit(int(task.partition(" ")[2] or 0))
        answer, usage = answered(task)
        with open(wanted.log, "a", encoding="utf-8") as log:
            append(log, role="user", text=task)
            append(log, role="assistant", text=answer, **({"usage": usage} if usage else {}))
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
