"""An agent on the real `openai` SDK: makes the calls named on its command line and prints what it received as JSON.

usage: openai_caller.py [--async] [--repeat N] CASE ...    (CASE! asks for a stream, CASE!! for one with usage)
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


def main() -> None:
    cli = argparse.ArgumentParser()
    cli.add_argument("--async", dest="use_async", action="store_true")
    cli.add_argument("--repeat", type=int, default=1)
    cli.add_argument("--out", default="")
    cli.add_argument("cases", nargs="+")
    args = cli.parse_args()
    key = os.environ.get("OPENAI_API_KEY", "sk-own-key")
    wanted = [
        (f"{case.rstrip('!')}@{n}-{i}", case.count("!"))
        for n in range(args.repeat)
        for i, case in enumerate(args.cases)
    ]
    lines = []

    async def all_async() -> None:
        async with openai.AsyncOpenAI(api_key=key, max_retries=0) as client:
            for model, stream in wanted:
                try:
                    lines.append(outcome(model, stream, await call_async(client, model, stream)))
                except openai.OpenAIError as error:
                    lines.append(outcome(model, stream, type(error).__name__))

    if args.use_async:
        asyncio.run(all_async())
    else:
        with openai.OpenAI(api_key=key, max_retries=0) as client:
            for model, stream in wanted:
                try:
                    lines.append(outcome(model, stream, call(client, model, stream)))
                except Exception as error:  # a cut answer shows as an httpx error, not as one of the SDK's
                    lines.append(outcome(model, stream, type(error).__name__))
    text = "\n".join(lines) + "\n"
    if args.out:
        with open(args.out, "w") as out:
            out.write(text)
    else:
        print(text, end="", flush=True)


if __name__ == "__main__":
    main()
