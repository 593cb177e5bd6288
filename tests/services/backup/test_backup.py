"""Backups of a real database: equal when they are restored, refused when they are damaged."""

import asyncio
import hashlib
import random
import shutil
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from services.backup.archive import Archive, Manifest
from services.backup.restore import Target, restore
from services.backup.snapshot import tables_of, write_backup
from services.conversations.turns import Turns
from services.engines import Engines
from services.errors import ConfigurationError, Conflict, DatabaseUnavailable, InvalidInput
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.jobs.queue import JobQueue
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.postgres import Database
from services.transfer.exporter import Exporter
from tests.support.turns import exchange, remember

pytestmark = pytest.mark.untraced


class Place:
    """A database without any table."""

    def __init__(self, postgres: EmbeddedPostgres, name: str) -> None:
        self.superuser = postgres.url("postgres", name)
        self.url = postgres.url(SERVICE_ROLE, name)
        self.target = Target(postgres.url(OWNER_ROLE, name), SERVICE_ROLE)


@pytest.fixture
def empty(postgres: EmbeddedPostgres) -> Iterator[Place]:
    name = f"empty_{uuid4().hex}"
    with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(OWNER_ROLE))
        )
        yield Place(postgres, name)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def superuser(postgres: EmbeddedPostgres, database_name: str) -> str:
    """The address of the test's database for one who sees everything."""
    return postgres.url("postgres", database_name)


@asynccontextmanager
async def _turns(url: str) -> AsyncIterator[tuple[Database, Turns]]:
    database = Database(url)
    await database.open()
    jobs = JobQueue(database)
    await jobs.open()
    yield database, Turns(database, jobs)
    await database.close()


async def _populate(url: str) -> None:
    """Rows in every table, of two tenants."""
    async with _turns(url) as (database, turns):
        other = await Tenants(database).create("shop")
        for tenant_id in (DEFAULT_TENANT, other.id):
            for user in ("u-1", "u-2"):
                for number in range(3):
                    text = f"Line {number}\nwith a tab\t, a \\ backslash and 表情🦊"
                    turn = await exchange(turns, text, "Sure.", tenant_id=tenant_id, user_id=user)
                await remember(database, turn)
            await ApiKeys(database).create(tenant_id, "a key", ["chat"])


def _content(url: str) -> dict[str, list[str]]:
    """Each row of each table, without what means nothing in another database."""
    with psycopg.connect(url) as connection:
        found = {}
        for table in tables_of(connection):
            query = sql.SQL("SELECT ({})::text FROM {} ORDER BY 1").format(table.column_list, table.identifier)
            found[table.name] = [str(row[0]) for row in connection.execute(query).fetchall()]
    return found


def _back_up(url: str, path: Path) -> Manifest:
    return write_backup(url, path, lambda *_: None)


def _restore(path: Path, target: Target, *, replace: bool = False) -> None:
    with Archive.open(path) as archive:
        archive.verify(lambda _: None)
        restore(target, archive, replace=replace)


async def _export(url: str, user: str) -> str:
    database = Database(url)
    await database.open()
    exporter = Exporter(database)
    found = await exporter.user(DEFAULT_TENANT, user)
    lines = [line async for batch in exporter.lines(DEFAULT_TENANT, found) for line in batch]
    await database.close()
    return "".join(lines)


async def test_a_restored_database_is_equal_in_every_table(
    engines: Engines, superuser: str, empty: Place, tmp_path: Path
) -> None:
    await _populate(engines.database_url)
    manifest = _back_up(engines.database_url, tmp_path / "b.zip")
    _restore(tmp_path / "b.zip", empty.target)
    before, after = _content(superuser), _content(empty.superuser)
    assert after == before
    assert {table.name: table.rows for table in manifest.tables} == {
        name: len(rows) for name, rows in after.items()
    }
    assert len([name for name, rows in after.items() if rows]) > 15
    assert await _export(empty.url, "u-1") == await _export(engines.database_url, "u-1")
    async with _turns(empty.url) as (_, turns):  # the role, its rights and the schema are what the service needs
        await exchange(turns, "Hello again", "Hi", user_id="u-1")


async def test_what_is_written_meanwhile_is_in_it_as_of_one_moment(
    engines: Engines, empty: Place, tmp_path: Path
) -> None:
    await _populate(engines.database_url)
    async with _turns(engines.database_url) as (_, turns):
        going, written = True, 0

        async def write(user: str) -> None:
            nonlocal written
            while going:
                await exchange(turns, f"Message {written}", f"Answer {written}", user_id=user, session_id=user)
                written += 1

        async def goes_on() -> None:
            before = written
            async with asyncio.timeout(60):
                while written <= before:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

        writers = [asyncio.create_task(write(f"w-{number}")) for number in range(4)]
        await goes_on()
        await asyncio.to_thread(_back_up, engines.database_url, tmp_path / "b.zip")
        await goes_on()
        going = False
        await asyncio.gather(*writers)
    _restore(tmp_path / "b.zip", empty.target)
    with psycopg.connect(empty.superuser) as connection:
        [(turns_there, answered, asked)] = connection.execute(
            "SELECT count(*), count(a.id), count(m.id) FROM turns t"
            " LEFT JOIN messages m ON m.id = t.user_message_id"
            " LEFT JOIN messages a ON a.id = t.assistant_message_id"
        ).fetchall()
        [(unanswered,)] = connection.execute(
            "SELECT count(*) FROM turns WHERE status = 'completed' AND assistant_message_id IS NULL"
        ).fetchall()
        [(orphans,)] = connection.execute(
            "SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = m.turn_id)"
        ).fetchall()
    assert 12 < turns_there < 12 + written
    assert (asked, unanswered, orphans) == (turns_there, 0, 0)
    assert answered >= turns_there - 4
    assert await _export(empty.url, "u-1") == await _export(engines.database_url, "u-1")


@pytest.mark.traced
async def test_a_damaged_file_is_refused_before_anything_is_written(
    engines: Engines, empty: Place, tmp_path: Path
) -> None:
    await _populate(engines.database_url)
    _back_up(engines.database_url, tmp_path / "b.zip")
    whole = (tmp_path / "b.zip").read_bytes()
    chance = random.Random(13)
    cut = [whole[: chance.randrange(len(whole))] for _ in range(20)]
    flipped = []
    with zipfile.ZipFile(tmp_path / "b.zip") as file:
        for member in file.infolist():
            if member.compress_size > 40:
                place = member.header_offset + 30 + len(member.filename) + 20 + member.compress_size // 2
                flipped.append(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
    assert len(flipped) > 10
    damaged = tmp_path / "damaged.zip"
    for content in [*cut, *flipped, b"", b"PK"]:
        damaged.write_bytes(content)
        with pytest.raises(InvalidInput, match=r"is not a whole backup|cannot be read"):
            _restore(damaged, empty.target)
    with psycopg.connect(empty.superuser) as connection:
        assert tables_of(connection) == []


def _rewritten(path: Path, change: Callable[[Manifest, dict[str, bytes]], None]) -> Path:
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    manifest = Manifest.model_validate_json(members.pop("manifest.json"))
    change(manifest, members)
    other = path.with_name("other.zip")
    with zipfile.ZipFile(other, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
        file.writestr("manifest.json", manifest.model_dump_json())
    return other


def _newer_schema(manifest: Manifest, _: dict[str, bytes]) -> None:
    manifest.revision = "9999"


def _newer_format(manifest: Manifest, _: dict[str, bytes]) -> None:
    manifest.format = 2


def _other_columns(manifest: Manifest, _: dict[str, bytes]) -> None:
    manifest.tables[0].columns.append("surprise")


def _missing_table(manifest: Manifest, members: dict[str, bytes]) -> None:
    members.pop(f"tables/{manifest.tables.pop().name}.copy")


def _added_member(_: Manifest, members: dict[str, bytes]) -> None:
    members["tables/surprise.copy"] = b""


def _wrong_count(manifest: Manifest, _: dict[str, bytes]) -> None:
    next(table for table in manifest.tables if table.name == "users").rows += 1


def _without_users(manifest: Manifest, members: dict[str, bytes]) -> None:
    members["tables/users.copy"] = b""
    table = next(each for each in manifest.tables if each.name == "users")
    table.rows, table.sha256 = 0, hashlib.sha256(b"").hexdigest()


@pytest.mark.traced
async def test_what_does_not_fit_is_refused_and_leaves_everything(
    engines: Engines, superuser: str, tmp_path: Path
) -> None:
    await _populate(engines.database_url)
    _back_up(engines.database_url, tmp_path / "b.zip")
    before = _content(superuser)
    for change, says in (
        (_newer_schema, "which this version does not know"),
        (_newer_format, "has the format 2"),
        (_other_columns, "the columns of .* are not those"),
        (_missing_table, "its tables are not those"),
        (_added_member, "its members are not those"),
        (_wrong_count, "the table users differs"),
        (_without_users, "does not fit the schema that it names"),
    ):
        with pytest.raises(InvalidInput, match=says):
            _restore(_rewritten(tmp_path / "b.zip", change), _owner(engines), replace=True)
        assert _content(superuser) == before


@pytest.mark.traced
async def test_data_is_only_replaced_when_that_is_asked_for(
    engines: Engines, superuser: str, tmp_path: Path
) -> None:
    await _populate(engines.database_url)
    _back_up(engines.database_url, tmp_path / "b.zip")
    before = _content(superuser)
    async with _turns(engines.database_url) as (_, turns):
        await exchange(turns, "Too late", "Yes", user_id="late")
    with pytest.raises(Conflict, match=r"holds data \(5 users, 2 API keys, 2 tenants\)"):
        _restore(tmp_path / "b.zip", _owner(engines))
    _restore(tmp_path / "b.zip", _owner(engines), replace=True)
    assert _content(superuser) == before


def test_a_database_in_use_is_left_alone(engines: Engines, superuser: str, tmp_path: Path) -> None:
    _back_up(engines.database_url, tmp_path / "b.zip")
    with psycopg.connect(engines.database_url):
        for replace in (False, True):
            with pytest.raises(Conflict, match="is in use"):
                _restore(tmp_path / "b.zip", _owner(engines), replace=replace)
    _restore(tmp_path / "b.zip", _owner(engines))  # a new installation holds nothing


_STATES = """
SELECT right(id::text, 2), right(superseded_by::text, 2), right(superseded_in::text, 2),
       right(archived_by::text, 2), retracted_at IS NOT NULL FROM episodes WHERE content IS NOT NULL ORDER BY id
"""


_LAST_FORMAT = Path(__file__).parent / "data" / "last_format.zip"


async def test_a_backup_of_the_last_format_is_restored(engines: Engines, superuser: str) -> None:
    """Of what `superseded_by` named it says which it was: a memory, a section of core memory, or a run."""
    for replace in (False, True):
        _restore(_LAST_FORMAT, _owner(engines), replace=replace)
        exported = await _export(engines.database_url, "u-old")
        assert '"user_id":"u-old"' in exported
        assert "I live in Lisbon now." in exported
        with psycopg.connect(superuser) as connection:
            assert connection.execute(_STATES).fetchall() == [
                ("11", None, None, None, False),
                ("12", None, None, "08", False),
                ("13", "11", None, None, False),
                ("14", None, None, None, False),  # what it was merged into gives way to it
                ("15", None, None, None, True),  # what took its place is gone
                ("17", None, "06", None, False),
            ]
            versions = (
                "SELECT DISTINCT right(was->>'archived_by', 2) FROM memory_versions WHERE was ? 'archived_by'"
            )
            assert connection.execute(versions).fetchall() == [("08",), (None,)]


def _with_removals(manifest: Manifest, members: dict[str, bytes]) -> None:
    """The run has removed what it archived; another one that removed was undone; the policy is to remove."""
    runs = members["tables/fading_runs.copy"].replace(b"archive", b"remove")
    undone = runs.replace(b"000000000008", b"000000000009").replace(b"000000000012", b"000000000011").split(b"\t")
    undone[9] = undone[8]
    policy = b"\t".join([runs.split(b"\t")[1], b"remove", b"90", b"0.3", b"propose", runs.split(b"\t")[8]]) + b"\n"
    changed = {"fading_runs": runs + b"\t".join(undone), "maintenance_policies": policy}
    for table in manifest.tables:
        if rows := changed.get(table.name):
            members[f"tables/{table.name}.copy"] = rows
            table.rows, table.sha256 = rows.count(b"\n"), hashlib.sha256(rows).hexdigest()


def test_what_fading_removed_in_the_last_format_stays_out_of_memory(
    engines: Engines, superuser: str, tmp_path: Path
) -> None:
    shutil.copy(_LAST_FORMAT, tmp_path / "b.zip")
    _restore(_rewritten(tmp_path / "b.zip", _with_removals), _owner(engines))
    with psycopg.connect(superuser) as connection:
        states = connection.execute(_STATES).fetchall()
        assert states[:2] == [("11", None, None, None, False), ("12", None, None, None, True)]
        runs = "SELECT right(id::text, 2), undone_at IS NOT NULL FROM upkeep_runs"
        assert connection.execute(runs).fetchall() == [("09", True)]
        changes = "SELECT right(run_id::text, 2), right(episode_id::text, 2), kept_id FROM upkeep_changes"
        assert connection.execute(changes).fetchall() == [("09", "11", None)]
        assert connection.execute("SELECT fading, fading_days FROM upkeep_policies").fetchall() == [
            ("archive", 90)
        ]


_CAME_LATER = {"messages": ["foreign_spans", "feeling", "feeling_span"], "turns": ["to_file", "process"]}


def _of_the_first_baseline(manifest: Manifest, members: dict[str, bytes]) -> None:
    manifest.revision = "0100"
    manifest.tables = [table for table in manifest.tables if table.name not in {"promises", "user_events"}]
    del members["tables/promises.copy"], members["tables/user_events.copy"]
    for table in manifest.tables:
        names, member = table.columns, f"tables/{table.name}.copy"
        at = [place for place, name in enumerate(names) if name not in _CAME_LATER.get(table.name, [])]
        rows = [row.split(b"\t") for row in members[member].splitlines()]
        members[member] = b"".join(b"\t".join(row[each] for each in at) + b"\n" for row in rows)
        table.columns, table.sha256 = [names[each] for each in at], hashlib.sha256(members[member]).hexdigest()


async def test_a_backup_of_an_earlier_schema_gets_what_came_since(
    engines: Engines, empty: Place, tmp_path: Path
) -> None:
    """Tables and columns that it lacks are as a new installation has them, and nothing is filed a second time."""
    await _populate(engines.database_url)
    _back_up(engines.database_url, tmp_path / "b.zip")
    _restore(_rewritten(tmp_path / "b.zip", _of_the_first_baseline), empty.target)
    assert await _export(empty.url, "u-1") == await _export(engines.database_url, "u-1")
    with psycopg.connect(empty.superuser) as connection:
        assert connection.execute("SELECT DISTINCT to_file FROM turns").fetchall() == [(False,)]


def test_a_backup_from_before_the_last_format_is_refused(engines: Engines, tmp_path: Path) -> None:
    def older(manifest: Manifest, _: dict[str, bytes]) -> None:
        manifest.revision = "0005"

    _back_up(engines.database_url, tmp_path / "b.zip")
    with pytest.raises(InvalidInput, match="has the schema 0005; before 0100, only 0033 can be restored"):
        _restore(_rewritten(tmp_path / "b.zip", older), _owner(engines))


@pytest.mark.traced
def test_what_cannot_be_backed_up_leaves_no_file(engines: Engines, empty: Place, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nothing to back up"):
        _back_up(empty.url, tmp_path / "b.zip")
    with pytest.raises(DatabaseUnavailable):
        _back_up("postgresql://nobody@127.0.0.1:1/nothing", tmp_path / "b.zip")
    with pytest.raises(FileNotFoundError):
        _back_up(engines.database_url, tmp_path / "missing" / "b.zip")
    assert list(tmp_path.iterdir()) == []
    _back_up(engines.database_url, tmp_path / "b.zip")
    assert (tmp_path / "b.zip").stat().st_mode & 0o077 == 0
    with pytest.raises(InvalidInput, match="there is such a file already"):
        _back_up(engines.database_url, tmp_path / "b.zip")


def _owner(engines: Engines) -> Target:
    assert engines.owner_url
    return Target(engines.owner_url, SERVICE_ROLE)
