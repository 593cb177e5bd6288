"""The Redis that several processes of one machine share: the machine's program."""

import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from pydantic import SecretStr
from redis.exceptions import RedisError

from services.errors import ConfigurationError
from services.platform import redis
from services.platform.embedded_redis import open_redis
from tests.support.jobs import until

pytestmark = pytest.mark.process


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[SecretStr]:
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server on this machine; install the system's package")
    async with open_redis(tmp_path, tmp_path / "redis.log") as url:
        yield SecretStr(url)


async def test_clients_share_what_is_kept(address: SecretStr) -> None:
    one, other = redis.connect(address), redis.connect(address)
    await one.set("kept", "值")
    assert await other.getdel("kept") == "值"
    await redis.close(one)
    await redis.close(other)


async def _pid(client: redis.RedisClient) -> int | None:
    try:
        return int((await client.info("server"))["process_id"])
    except (RedisError, OSError):
        return None


async def test_the_program_is_started_again_when_it_dies(address: SecretStr) -> None:
    client = redis.connect(address)
    first = await _pid(client)
    assert first is not None
    os.kill(first, signal.SIGKILL)
    psutil.Process(first).wait(60)

    async def is_there_again() -> bool:
        return await _pid(client) not in {None, first}

    await until(is_there_again)
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


async def test_without_a_program_the_setting_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigurationError, match="set ANAMNESIS_REDIS_URL"):
        async with open_redis(tmp_path, tmp_path / "redis.log"):
            pass
