"""Agents for recipes that kill things. Each ends when `end` is in its folder, and says in `total.json` what it did.

Their own words are the judge: nothing that was killed has touched them.
"""

BEGIN = """
import hashlib, json, os, random, sys, time

with open("spawned", "a") as spawned:
    spawned.write(os.environ["KT_RUN"] + "\\n")

def over(code, **facts):
    with open("total.new", "w") as total:
        json.dump(facts, total)
    os.rename("total.new", "total.json")
    sys.exit(code)
"""

PRINTER = (
    BEGIN
    + """
seed, burst, rest_s, code = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
chance = random.Random(seed)
count, said, digest = 0, 0, hashlib.sha256()

def say(data):
    while data:  # cut anywhere: inside of a line, inside of a character
        cut = chance.choice((1, 7, 50, 900, 5000))
        data = data[os.write(1, data[:cut]):]
        if chance.random() < 0.05:
            os.write(2, b"noise \\xf0\\x9f KTESIO_USAGE {}\\r\\n" * chance.randrange(1, 9))

while not os.path.exists("end"):
    lines = b""
    for _ in range(burst):
        report = b'KTESIO_USAGE {"sequence": %d, "input_tokens": %d, "output_tokens": 1}' % (count, count % 97)
        lines += report + chance.choice((b"\\n", b"\\r\\n"))
        if chance.random() < 0.1:
            lines += chance.choice((b"bad \\xff\\xfe text\\n", b"half a \\xe2\\x82\\n", b"50%\\r100%\\r\\n", b"\\0\\n"))
        count += 1
    say(lines)
    said += len(lines)
    digest.update(lines)
    time.sleep(rest_s)
over(code, lines=count, bytes=said, digest=digest.hexdigest())
"""
)

CALLER = (
    BEGIN
    + """
import http.client
from urllib.parse import urlsplit

name, rest_s, code = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
base = urlsplit(os.environ["OPENAI_BASE_URL"])
tries = answered = 0
while not os.path.exists("end"):
    tries += 1
    model = ("demo/answer", "demo/story")[tries % 2] + f"@{name}-{tries}"
    body = {"model": model, "stream": tries % 2 == 1, "messages": [{"role": "user", "content": "hi"}]}
    connection = http.client.HTTPConnection(base.netloc, timeout=60)
    try:
        headers = {"content-type": "application/json", "authorization": "Bearer sk-own"}
        connection.request("POST", base.path + "/chat/completions", json.dumps(body), headers)
        answer = connection.getresponse()
        answer.read()
        answered += answer.status == 200
        print(answer.status, flush=True)
    except ConnectionRefusedError:
        print("refused", flush=True)
    except (OSError, http.client.HTTPException) as error:
        print("cut", type(error).__name__, flush=True)
    finally:
        connection.close()
    time.sleep(rest_s)
over(code, tries=tries, answered=answered)
"""
)
