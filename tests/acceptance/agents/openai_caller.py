"""An agent on the real `openai` SDK: makes the calls named on its command line and prints what it received as JSON.

usage: openai_caller.py [--style sync|async|both] [--repeat N] CASE ...    (CASE! asks for a stream, CASE!! for one
with usage)
"""

import argparse
import asyncio
import json
import os

import openai

MESSAGES = [{"role": "user", "content": "hello"}]


def options(marks: int) -> dict[str, object]:
    return {"stream": marks > 0} | ({"stream_options": {"include_usage": True}} if marks > 1 else {})


def call(client: openai.OpenAI, model: str, marks: int) -> object:
    stream = marks > 0
    answer = client.chat.completions.create(model=model, messages=MESSAGES, **options(marks))  # type: ignore[call-overload]
    return [chunk.model_dump() for chunk in answer] if stream else answer.model_dump()


async def call_async(client: openai.AsyncOpenAI, model: str, marks: int) -> object:
    stream = marks > 0
    answer = await client.chat.completions.create(model=model, messages=MESSAGES, **options(marks))  # type: ignore[call-overload]
    return [chunk.model_dump() async for chunk in answer] if stream else answer.model_dump()


def outcome(model: str, stream: int, result: object) -> str:
    return json.dumps({"model": model, "stream": stream, "result": result})


def wanted(style: str, repeat: int, cases: list[str]) -> list[tuple[str, int]]:
    """Return each call's model, which no other call has, and what it asks for."""
    return [
        (f"{case.rstrip('!')}@{style}-{n}-{i}", case.count("!"))
        for n in range(repeat)
        for i, case in enumerate(cases)
    ]


def all_sync(key: str, calls: list[tuple[str, int]]) -> list[str]:
    lines = []
    with openai.OpenAI(api_key=key, max_retries=0) as client:
        for model, stream in calls:
            try:
                lines.append(outcome(model, stream, call(client, model, stream)))
            except Exception as error:  # a cut answer shows as an httpx error, not as one of the SDK's
                lines.append(outcome(model, stream, type(error).__name__))
    return lines


async def all_async(key: str, calls: list[tuple[str, int]]) -> list[str]:
    lines = []
    async with openai.AsyncOpenAI(api_key=key, max_retries=0) as client:
        for model, stream in calls:
            try:
                lines.append(outcome(model, stream, await call_async(client, model, stream)))
            except openai.OpenAIError as error:
                lines.append(outcome(model, stream, type(error).__name__))
    return lines


def main() -> None:
    cli = argparse.ArgumentParser()
    cli.add_argument("--style", choices=["sync", "async", "both"], default="sync")
    cli.add_argument("--repeat", type=int, default=1)
    cli.add_argument("--out", default="")
    cli.add_argument("cases", nargs="+")
    args = cli.parse_args()
    key = os.environ.get("OPENAI_API_KEY", "sk-own-key")
    lines = []
    if args.style != "async":
        lines += all_sync(key, wanted("sync", args.repeat, args.cases))
    if args.style != "sync":
        lines += asyncio.run(all_async(key, wanted("async", args.repeat, args.cases)))
    text = "\n".join(lines) + "\n"
    if args.out:
        with open(args.out, "w") as out:
            out.write(text)
    else:
        print(text, end="", flush=True)


if __name__ == "__main__":
    main()
