"""The Redis that several processes of one machine share: the machine's program, and the stand-in for it."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from pydantic import SecretStr
from redis.exceptions import RedisError, ResponseError

from services.errors import ConfigurationError
from services.platform import redis
from services.platform.embedded_redis import open_redis
from tests.support.redis_servers import use_everything

pytestmark = [pytest.mark.process, pytest.mark.anyio]


@pytest.fixture(params=["program", "stand-in"])
async def address(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SecretStr]:
    if request.param == "stand-in":
        monkeypatch.setenv("PATH", "")
    elif shutil.which("redis-server") is None:
        pytest.skip("no redis-server on this machine; install the system's package")
    async with open_redis(tmp_path, tmp_path / "redis.log") as url:
        yield SecretStr(url)


async def test_clients_share_all_that_the_service_does_with_redis(address: SecretStr) -> None:
    one, other = redis.connect(address), redis.connect(address)
    await use_everything(one, address.get_secret_value())
    script = one.register_script("redis.call('SET', KEYS[1], ARGV[1]) return {1, ARGV[1], false}")
    assert await script(keys=["kept"], args=["值\r\n"]) == [1, "值\r\n", None]
    assert await other.getdel("kept") == "值\r\n"
    with pytest.raises(ResponseError, match="unknown command"):
        await one.execute_command("NONSENSE")
    await redis.close(one)
    await redis.close(other)


async def _pid(client: redis.RedisClient) -> int | None:
    try:
        return int((await client.info("server"))["process_id"])
    except (RedisError, OSError):
        return None


@pytest.mark.parametrize("address", ["program"], indirect=True)
async def test_the_program_is_started_again_when_it_dies(address: SecretStr) -> None:
    client = redis.connect(address)
    first = await _pid(client)
    assert first is not None
    os.kill(first, signal.SIGKILL)
    psutil.Process(first).wait(10)
    for _ in range(200):
        again = await _pid(client)
        if again not in {None, first}:
            break
        await asyncio.sleep(0.05)
    assert again not in {None, first}
    await redis.close(client)


async def test_a_program_that_does_not_start_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "redis-server"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(program.parent))
    with pytest.raises(ConfigurationError, match="redis-server does not start"):
        async with open_redis(tmp_path, tmp_path / "redis.log"):
            pass
