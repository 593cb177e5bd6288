import subprocess
import sys

import psutil
import pytest

from services.platform.heap import give_back_freed_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

_MB = 1024 * 1024


async def test_memory_freed_beneath_what_is_in_use_is_given_back() -> None:
    pieces = [bytes(60 * 1024) for _ in range(2_000)]
    in_use = pieces[::50]
    held = psutil.Process().memory_info().rss
    pieces.clear()
    if not await give_back_freed_memory():
        pytest.skip("this C library cannot")
    assert psutil.Process().memory_info().rss < held - 60 * _MB
    assert len(in_use) == 40


_MOVES = """
from pathlib import Path
from services.platform.heap import use_large_pages

def large_kb():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("AnonHugePages:"))

numbers = [str(number) for number in range(400_000)]
before, moved = large_kb(), use_large_pages()
assert numbers == [str(number) for number in range(400_000)]
print(moved, before, large_kb())
"""


def test_objects_are_moved_to_large_pages_and_stay_what_they_are() -> None:
    found = subprocess.run([sys.executable, "-c", _MOVES], capture_output=True, text=True, check=True, timeout=60)
    moved, before_kb, after_kb = map(int, found.stdout.split())
    if not moved:
        pytest.skip("this system cannot")
    assert after_kb > before_kb
    assert after_kb >= 2048
