"""An agent that reports its own usage: numbered KTESIO_USAGE lines, in bursts of 500 with a breath in between."""

import select
import sys

count, breath_s = int(sys.argv[1]), float(sys.argv[2])
for n in range(count):
    sys.stdout.write(
        f'noise {n}\nKTESIO_USAGE {{"sequence": {n}, "input_tokens": {n % 97}, "output_tokens": 1}}\n'
    )
    if n % 500 == 499:
        sys.stdout.flush()
        select.select([], [], [], breath_s)
sys.stdout.write("done\n")
sys.stdout.flush()
while True:
    select.select([], [], [], 60)
