"""The file of a backup: whatever happens to its bytes, what is accepted holds the rows that were written."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.backup.archive import Archive, Manifest, new_archive
from services.errors import InvalidInput

ROWS = {name: "".join(f"{number}\t{name}\n" for number in range(50)).encode() for name in ("users", "turns")}


def _write(path: Path) -> None:
    with new_archive(path) as archive:
        tables = [archive.add_table(name, ["number", "name"], [rows]) for name, rows in ROWS.items()]
        archive.finish(
            Manifest(format=1, service="0", revision="0001", made_at="2026-03-01", tables=tables, sequences={})
        )


def _read(path: Path) -> dict[str, bytes]:
    with Archive.open(path) as archive:
        archive.verify(lambda _: None)
        return {table.name: b"".join(archive.blocks(table)) for table in archive.manifest.tables}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    _write(tmp_path / "b.zip")
    assert _read(tmp_path / "b.zip") == ROWS
    with Archive.open(tmp_path / "b.zip") as archive:
        assert archive.manifest.rows_of("users", "visits") == {"users": 50, "visits": 0}


@pytest.mark.parametrize("seed", range(2))
def test_damaged_bytes_are_refused_or_change_no_row(tmp_path: Path, seed: int) -> None:
    _write(tmp_path / "b.zip")
    whole, chance = (tmp_path / "b.zip").read_bytes(), random.Random(seed)
    refused = 0
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3))):
            damaged[chance.randrange(len(damaged))] ^= chance.randrange(1, 256)
        (tmp_path / "d.zip").write_bytes(bytes(damaged))
        try:
            assert _read(tmp_path / "d.zip") == ROWS  # a date in a header, say
        except InvalidInput:
            refused += 1
    assert refused > 100


def test_a_file_that_was_not_finished_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"1\n"
        raise ConnectionError

    with pytest.raises(ConnectionError), new_archive(tmp_path / "b.zip") as archive:
        archive.add_table("users", ["number"], broken())
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    for path, reason in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file or directory")):
        with pytest.raises(InvalidInput, match=f"cannot be read: {reason}"):
            _read(path)
