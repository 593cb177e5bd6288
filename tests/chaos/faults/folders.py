"""Faults of the data folder: full, read-only, shared by two services, made by a newer version."""

import asyncio
import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from services.platform.embedded_postgres import OWNER_ROLE, EmbeddedPostgres
from tests.chaos.faults.rig import Rig

_FULL_S = 20.0
_DISK = "512m"


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system with little room."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK},mode=755", "tmpfs", disk], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


async def fill_disk(rig: Rig) -> None:
    """No byte is left for 20 s."""
    filling = rig.data.parent / "filling"
    await asyncio.to_thread(_fill, filling)
    try:
        await asyncio.sleep(_FULL_S)
        said = " ".join(rig.findings.errors.values())
        rig.findings.expect(f"nobody was told of the full disk: {said}", not said or "space" in said)
    finally:
        filling.unlink()


def _fill(file: Path) -> None:
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as filling:
        while filling.write(bytes(1 << 20)):
            pass
    with contextlib.suppress(OSError), file.open("ab", buffering=0) as filling:
        while filling.write(bytes(512)):
            pass


async def start_read_only(rig: Rig) -> None:
    """A start in a folder that cannot be written to; then it can be again."""
    await asyncio.to_thread(rig.service.stop)
    await _remount(rig, "ro")
    said = await rig.refused(rig.another())
    rig.findings.expect(f"the folder is not named: {said}", str(rig.data) in said)
    await _remount(rig, "rw")
    await asyncio.to_thread(rig.service.start)


async def _remount(rig: Rig, how: str) -> None:
    command = ["mount", "-o", f"remount,{how}", str(rig.data.parent)]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)


async def start_second(rig: Rig) -> None:
    """A second service on the data folder of the first."""
    said = await rig.refused(rig.another())
    rig.findings.expect(f"the folder is not named: {said}", str(rig.data) in said)


async def start_older(rig: Rig) -> None:
    """A program that does not know the database's schema; then the one that does."""
    await asyncio.to_thread(rig.service.stop)
    known = await _stamp(rig, "9999", "serves versions from 9999")
    said = await rig.refused(rig.another())
    rig.findings.expect(f"the schema is not named: {said}", "9999" in said)
    await _stamp(rig, *known)
    await asyncio.to_thread(rig.service.start)


async def _stamp(rig: Rig, revision: str, serves: str | None) -> tuple[str, str | None]:
    """Set the schema's revision, and from which version on it says that it serves; return what they were."""
    server = EmbeddedPostgres(rig.data)
    await server.start()
    try:
        with psycopg.connect(server.url(OWNER_ROLE)) as connection:
            row = connection.execute(
                "SELECT version_num, obj_description('alembic_version'::regclass) FROM alembic_version"
            ).fetchone()
            connection.execute("UPDATE alembic_version SET version_num = %s", [revision])
            connection.execute(psycopg.sql.SQL("COMMENT ON TABLE alembic_version IS {}").format(serves))
    finally:
        await server.stop()
    assert row
    return str(row[0]), row[1]
