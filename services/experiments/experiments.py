"""Experiments of an operator: drafting, starting, stopping and removing them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, LiteralString
from uuid import UUID

from psycopg.errors import UniqueViolation
from psycopg.rows import class_row, tuple_row
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.errors import Conflict, InvalidInput, NotFound
from services.experiments.assignment import Variant
from services.platform.connections import Connection, again_if_contended
from services.platform.postgres import Database

Status = Literal["draft", "running", "stopped"]

_SHOWN: LiteralString = """
id, name, description, status, variants, experts, share, created_at, started_at, stopped_at
"""

_PAGE: LiteralString = f"""
SELECT {_SHOWN} FROM experiments
WHERE tenant_id = %(tenant_id)s AND (%(after)s::text IS NULL OR name COLLATE "C" > %(after)s)
ORDER BY name COLLATE "C" LIMIT %(limit)s
"""  # noqa: S608 — our own text only

_GET: LiteralString = f"""
SELECT {_SHOWN} FROM experiments WHERE tenant_id = %(tenant_id)s AND name = %(name)s
"""  # noqa: S608 — our own text only

_ADD: LiteralString = f"""
INSERT INTO experiments (id, tenant_id, name, description, variants, experts, share)
VALUES (%(id)s, %(tenant_id)s, %(name)s, %(description)s, %(variants)s, %(experts)s, %(share)s)
RETURNING {_SHOWN}
"""  # noqa: S608 — our own text only

_CHANGE: LiteralString = f"""
UPDATE experiments SET description = %(description)s, status = %(status)s, variants = %(variants)s,
    experts = %(experts)s, share = %(share)s,
    started_at = CASE WHEN %(status)s = 'running' THEN coalesce(started_at, now()) ELSE started_at END,
    stopped_at = CASE WHEN %(status)s = 'stopped' THEN coalesce(stopped_at, now()) END
WHERE tenant_id = %(tenant_id)s AND name = %(name)s
RETURNING {_SHOWN}
"""  # noqa: S608 — our own text only

_RUNNING: LiteralString = f"""
SELECT {_SHOWN} FROM experiments WHERE tenant_id = %(tenant_id)s AND status = 'running' AND name <> %(name)s
"""  # noqa: S608 — our own text only

_EXPERTS: LiteralString = """
SELECT wanted.name FROM unnest(%(experts)s::text[]) AS wanted (name)
WHERE NOT EXISTS (SELECT FROM experts e WHERE e.tenant_id = %(tenant_id)s AND e.name = wanted.name)
"""

# Of two that are started at the same moment, each must see the other.
_LOCK: LiteralString = "SELECT pg_advisory_xact_lock(hashtextextended('experiments ' || %(tenant_id)s::text, 0))"

_FIXED = ("variants", "experts", "share")


@dataclass(frozen=True)
class NewExperiment:
    """An experiment to be drafted."""

    name: str
    variants: Sequence[Variant]
    description: str = ""
    experts: Sequence[str] | None = None
    share: float = 1.0


@dataclass(frozen=True)
class Experiment:
    """A stored experiment."""

    id: UUID
    name: str
    description: str
    status: Status
    variants: list[Variant]
    experts: list[str] | None
    share: float
    created_at: datetime
    started_at: datetime | None
    stopped_at: datetime | None


class Experiments:
    """Keeps the experiments of tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, tenant_id: UUID, *, after: str | None = None, limit: int) -> list[Experiment]:
        """Return experiments by name, from the first after the name `after`."""
        values = {"tenant_id": tenant_id, "after": after, "limit": limit}
        return await self._database.fetch(tenant_id, _PAGE, values, class_row(Experiment))

    async def get(self, tenant_id: UUID, name: str) -> Experiment:
        """Return the experiment of a name. Raises `NotFound` if the tenant has no experiment of this name."""
        values = {"tenant_id": tenant_id, "name": name}
        found = await self._database.fetch(tenant_id, _GET, values, class_row(Experiment))
        if not found:
            raise NotFound(f"There is no experiment {name!r}.")
        return found[0]

    async def create(self, tenant_id: UUID, new: NewExperiment) -> Experiment:
        """Draft an experiment; it changes nothing until it is started. Raises `InvalidInput` if variants share
        a name, or there is no such expert, and `Conflict` if there is an experiment of this name."""
        values = {
            **vars(new),
            "id": uuid7(),
            "tenant_id": tenant_id,
            "variants": Jsonb(list(new.variants)),
            "experts": None if new.experts is None else list(new.experts),
        }
        try:
            async with self._database.tenant(tenant_id) as connection:
                await _check(connection, values, new.variants)
                async with connection.cursor(row_factory=class_row(Experiment)) as cursor:
                    made = await (await cursor.execute(_ADD, values)).fetchone()
        except UniqueViolation:
            raise Conflict(f"There is an experiment {new.name!r} already.") from None
        assert made is not None  # noqa: S101 — it was just inserted
        return made

    @again_if_contended
    async def change(self, tenant_id: UUID, name: str, changes: Mapping[str, Any]) -> Experiment:
        """Change the given fields; `status` starts or stops the experiment.

        A started experiment keeps its variants, its experts and its share, because users would otherwise change
        sides.

        Raises:
            NotFound: The tenant has no experiment of this name.
            InvalidInput: Variants share a name, or there is no such expert.
            Conflict: It was started before, or another running experiment varies the same setting.
        """
        async with self._database.tenant(tenant_id) as connection:
            await connection.execute(_LOCK, {"tenant_id": tenant_id})
            async with connection.cursor(row_factory=class_row(Experiment)) as cursor:
                values: dict[str, Any] = {"tenant_id": tenant_id, "name": name}
                old = await (await cursor.execute(_GET, values)).fetchone()
                if old is None:
                    raise NotFound(f"There is no experiment {name!r}.")
                _refuse(old, changes)
                values = {**vars(old), **changes, **values}
                variants: list[Variant] = values["variants"]
                await _check(connection, values, variants)
                if values["status"] == "running":
                    others = await (await cursor.execute(_RUNNING, values)).fetchall()
                    _refuse_overlap(variants, values["experts"], others)
                values["variants"] = Jsonb(variants)
                changed = await (await cursor.execute(_CHANGE, values)).fetchone()
        assert changed is not None  # noqa: S101 — it was just read
        return changed

    async def delete(self, tenant_id: UUID, name: str) -> None:
        """Remove an experiment that is not running; its turns keep their tags. Raises `NotFound` if the tenant
        has no experiment of this name, and `Conflict` if the experiment is running."""
        statement: LiteralString = """
            DELETE FROM experiments WHERE tenant_id = %(tenant_id)s AND name = %(name)s AND status <> 'running'
            RETURNING id
        """
        values = {"tenant_id": tenant_id, "name": name}
        if not await self._database.fetch(tenant_id, statement, values, tuple_row):
            await self.get(tenant_id, name)
            raise Conflict(f"The experiment {name!r} is running; stop it first.")


async def _check(connection: Connection, values: Mapping[str, Any], variants: Sequence[Variant]) -> None:
    names = [variant["name"] for variant in variants]
    if len(set(names)) < len(names):
        raise InvalidInput("variants", "two variants have the same name")
    if missing := await (await connection.execute(_EXPERTS, values)).fetchone():
        raise InvalidInput("experts", f"there is no expert named {missing[0]!r}")


def _refuse(old: Experiment, changes: Mapping[str, Any]) -> None:
    changed = [name for name in _FIXED if name in changes and changes[name] != getattr(old, name)]
    if old.status != "draft" and changed:
        raise Conflict(
            f"The experiment {old.name!r} was started, and its {' and '.join(changed)} cannot change: users would "
            "get another variant. Stop it and draft a new one."
        )
    if old.status != "draft" and changes.get("status") == "draft":
        raise Conflict(f"The experiment {old.name!r} was started, and is no draft any more; stop it instead.")
    if old.status == "draft" and changes.get("status") == "stopped":
        raise Conflict(f"The experiment {old.name!r} has not been started.")


def _refuse_overlap(
    variants: Sequence[Variant], experts: Sequence[str] | None, others: Sequence[Experiment]
) -> None:
    mine = {setting for variant in variants for setting in variant["settings"]}
    for other in others:
        theirs = {setting for variant in other.variants for setting in variant["settings"]}
        both = experts is None or other.experts is None or set(experts) & set(other.experts)
        if both and mine & theirs:
            shared = " and ".join(sorted(mine & theirs))
            raise Conflict(f"The experiment {other.name!r} is running and varies {shared} too; stop it first.")
