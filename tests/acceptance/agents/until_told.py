"""An agent that keeps asking, plain and streamed, until the file `enough` is in its folder; then it says how it went.

usage: until_told.py CASE ...    (CASE! asks for a stream)
"""

import json
import os
from pathlib import Path

import openai

done, failed = [], []
with openai.OpenAI(api_key="sk-own-key", max_retries=0, base_url=os.environ["OPENAI_BASE_URL"]) as client:
    import sys

    number = 0
    while not Path("enough").exists():
        for case in sys.argv[1:]:
            number += 1
            model, stream = f"{case.rstrip('!')}@{number}", case.endswith("!")
            try:
                messages = [{"role": "user", "content": "hello"}]
                answer = client.chat.completions.create(model=model, messages=messages, stream=stream)  # type: ignore[call-overload]
                if (
                    stream
                    and [chunk.choices[0].finish_reason for chunk in answer if chunk.choices][-1] is None
                ):
                    raise RuntimeError("the stream was cut")
                done.append(model)
            except Exception as error:
                failed.append(f"{model}: {type(error).__name__}: {error} <- {error.__cause__!r}")
        Path("rounds").write_text(str(number))
print(json.dumps({"done": done, "failed": failed}), flush=True)
