import sys

import pytest

from services.platform.heap import give_back_freed_memory, resident_bytes

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")]

_MB = 1024 * 1024


async def test_memory_freed_beneath_what_is_in_use_is_given_back() -> None:
    pieces = [bytes(60 * 1024) for _ in range(2_000)]
    in_use = pieces[::50]
    held = resident_bytes()
    pieces.clear()
    if not await give_back_freed_memory():
        pytest.skip("this C library cannot")
    assert resident_bytes() < held - 60 * _MB
    assert len(in_use) == 40
