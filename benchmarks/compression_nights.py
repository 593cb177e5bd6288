"""How memory stands after ninety nights of compression with a model that fails one time in ten.

`python -m benchmarks.compression_nights [--nights 90] [--seed 1]`
"""

import argparse
import asyncio
import sys

from benchmarks.compression_rig import compressing
from tests.support.compression_nights import Night, nights


async def run(number: int, seed: int) -> tuple[list[Night], list[str]]:
    """The course of the nights, and what went wrong."""
    async with compressing() as (services, server):
        return await nights(services, server, number, seed)


def main() -> None:
    """Print every tenth night."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", type=int, default=90)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    course, wrong = asyncio.run(run(arguments.nights, arguments.seed))
    for number, night in enumerate(course, 1):
        if number % 10 == 0:
            print(
                f"night {number}: {night.said} memories said, {night.living} living, {night.consolidated} merged "
                f"texts stored, {night.episodes} episodes stored"
            )
    print(f"{sum(night.failures for night in course)} groups failed, {len(wrong)} violations")
    for each in wrong:
        print(f"WRONG: {each}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
