"""Whether compression loses anything: runs that are broken at any step, by a model that answers anything.

`python -m benchmarks.compression_fuzz [--runs 1000] [--seed 1]`

Each user has a few memories and a few runs; a run may be broken off at any step, its model answers rightly or in
some twenty wrong ways, and memories are removed and written meanwhile. After each run nothing may be lost or half
swapped, and in the end undoing every run must give back exactly what was. Ends with code 1 where that is not so.
"""

import argparse
import asyncio
import sys
import time

from benchmarks.compression_rig import compressing
from tests.support.compression_faults import Tally, one_case


async def run(runs: int, seed: int) -> Tally:
    """Number of runs, or a few more."""
    tally = Tally()
    rigged = compressing(memory_compression_similarity=0.5, memory_compression_cluster=2)
    async with rigged as (services, server):
        while tally.runs < runs:
            await one_case(services, server, seed, tally)
            seed += 1
    return tally


def main() -> None:
    """Print what became of the runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    begun = time.monotonic()
    tally = asyncio.run(run(arguments.runs, arguments.seed))
    print(
        f"{tally.runs} runs: {tally.swapped} changed memory, {tally.unchanged} left it as it was, {tally.crashes} "
        f"were broken off, {tally.interfered} were interfered with; {time.monotonic() - begun:.0f} s"
    )
    for wrong in tally.wrong:
        print(f"WRONG: {wrong}")
    print(f"{len(tally.wrong)} violations")
    sys.exit(1 if tally.wrong else 0)


if __name__ == "__main__":
    main()
