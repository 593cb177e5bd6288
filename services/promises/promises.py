"""The promises of users: made, listed, changed, and undone through the log of operations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from psycopg.rows import dict_row, tuple_row
from uuid_utils.compat import uuid7

from services.encryption.marks import Words
from services.errors import CallerError, Conflict, InvalidInput, NotFound
from services.memory.core.blocks import Owner
from services.memory.core.values import CoreValues
from services.memory.operations import OperationLog, Trigger
from services.memory.planning.wording import told
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.platform.shared_reads import page_after
from services.promises import sql
from services.promises.after_event import after_event
from services.promises.following import Following
from services.promises.logged import FIELDS, OPERATION, locked, logged, note, placed, sealed, told_of
from services.promises.promise import LONGEST_TEXT, AskedBy, Promise, occasion_of, promise_of
from services.promises.quiet import QuietHours
from services.text.language import language_of
from services.time_reference.local_days import BadTimeZone, time_zone
from services.time_reference.occasions import Occasion
from state.memory import MemoryChange, PlainPromise
from state.turn import OpenTurn

MOST_OPEN = 1_000
"""Promises of a user that wait at the same time."""


@dataclass(frozen=True, kw_only=True)
class NewPromise:
    """A promise to make."""

    text: str
    when: str
    """The words that say when."""
    timezone: str | None = None
    """None = the user's."""
    conversation_id: UUID | None = None
    message_id: UUID | None = None
    quote: str = ""
    asked_by: AskedBy = "user"
    id: UUID | None = None
    """Known beforehand, so that it is made once; None = a new one."""


class Promises:
    """Makes, lists and changes promises."""

    def __init__(self, database: Database, log: OperationLog, values: CoreValues) -> None:
        self._database = database
        self._values = values
        self.following = Following(database, log, values)
        self.quiet = QuietHours(database, log)
        self._log = log
        self._secrets = log.secrets

    async def make(
        self, owner: Owner, new: NewPromise, trigger: Trigger, now: datetime | None = None
    ) -> tuple[Promise, UUID]:
        """Make a promise; return it, and the operation that undoes it. One with a known id is made once. Raises
        `InvalidInput` if `when` cannot be read or lies in the past, or the text or the time zone is none, and
        `Conflict` if too many wait already."""
        now = now or datetime.now(UTC)
        known = replace(new, id=new.id or uuid7(), timezone=await self._zone(owner, new.timezone))
        assert known.id is not None  # noqa: S101 — it was just given one
        occasion = await self.occasion(owner, new.when, now, known.timezone or "")

        async def add(connection: Connection) -> None:
            await self.make_in(connection, owner, known, occasion, trigger)

        await self._database.transact(owner.tenant_id, add)
        return await self.get(owner, known.id, now), uuid5(known.id, "operation")

    async def make_in(
        self,
        connection: Connection,
        owner: Owner,
        new: NewPromise,
        occasion: Occasion,
        trigger: Trigger,
        *,
        but: Sequence[datetime] = (),
    ) -> UUID | None:
        """Make a promise of a known id and time zone in a transaction of the caller's; return its operation.
        None = it is there already, or it is due at one of the moments of `but`. Raises as `make`."""
        assert new.id is not None  # noqa: S101 — as the caller promises
        assert new.timezone is not None  # noqa: S101
        operation_id = uuid5(new.id, "operation")
        values = {
            **vars(owner),
            "id": new.id,
            "conversation_id": new.conversation_id,
            "message_id": new.message_id,
            "operation_id": operation_id,
            "text": Words(self._text(new.text)),
            "said": Words(new.when.strip()),
            "quote": Words(self._secrets.without(new.quote)),
            "rule": Words(occasion.rule),
            "timezone": new.timezone,
            "asked_by": new.asked_by,
            "due_at": occasion.at,
            "event": "changed" if occasion.follows else None,  # it may have moved since it was read
        }
        counted = await (await connection.execute(sql.COUNT_OPEN, values)).fetchone()
        if counted and counted[0] >= MOST_OPEN:
            raise Conflict(f"{MOST_OPEN} promises wait already; cancel some of them.")
        if occasion.at in but or not (await connection.execute(sql.ADD, values)).rowcount:
            return None
        made = {name: str(values[name]) for name in FIELDS if name in values} | {"id": str(new.id)}
        made |= {"state": "open", "due_at": occasion.at.isoformat()}
        trigger = placed(trigger, new.conversation_id)
        items = [told_of(occasion.at, new.timezone, made["text"])]
        await note(self._log, connection, owner, "make", None, made, trigger, operation_id, items)
        return operation_id

    async def occasion(self, owner: Owner, said: str, now: datetime, timezone: str) -> Occasion:
        """Read when something is promised for; it may name an event of the user's, of which memory knows the day.

        Raises:
            InvalidInput: `when` cannot be read, lies in the past, or names an event whose day is not known.
        """
        try:
            return occasion_of(said, now, timezone)
        except InvalidInput:
            found = await after_event(self._values, owner, said, now, timezone)
            if found is None:
                raise
            return found

    async def make_plain(self, turn: OpenTurn, asked: PlainPromise) -> MemoryChange:
        """Make what a message asks for in plain form, once; return what the turn tells of it. Where it cannot
        be made, that is told, and it has no operation."""
        new = NewPromise(
            text=asked.text,
            when=asked.when,
            timezone=turn.timezone,
            conversation_id=turn.conversation_id,
            message_id=turn.user_message_id,
            quote=asked.quote,
            id=uuid5(turn.turn_id, OPERATION),
        )
        change = promised_change(turn, asked)
        try:
            _, operation_id = await self.make(Owner.of_turn(turn), new, Trigger.of_turn(turn, "user"), turn.now)
        except CallerError as error:
            return MemoryChange(**{**change, "operation_id": None, "summary": error.message})
        return MemoryChange(**{**change, "operation_id": str(operation_id)})

    async def get(self, owner: Owner, promise_id: UUID, now: datetime | None = None) -> Promise:
        """One promise of a user's. Raises `NotFound` if there is none, or what asked for it was forgotten."""
        found = await self._page(owner, {"id": promise_id}, None, 1, now)
        if not found:
            raise NotFound(f"There is no promise {promise_id}.")
        return found[0]

    async def list(
        self,
        owner: Owner,
        *,
        state: str | None = None,
        visible: bool = False,
        after: tuple[datetime, UUID] | None = None,
        limit: int = 50,
    ) -> Sequence[Promise]:
        """Promises by their moments; `visible`: only those that the owner's expert and space may show."""
        about: dict[str, Any] = {"state": "open" if state == "due" else state, "visible": visible}
        if visible:
            about["expert_id"] = owner.expert_id
        return await self._page(owner, about, after, limit, None)

    async def change(
        self,
        owner: Owner,
        promise_id: UUID,
        trigger: Trigger,
        *,
        text: str | None = None,
        when: str | None = None,
        timezone: str | None = None,
        state: str | None = None,
        now: datetime | None = None,
    ) -> Promise:
        """Say it otherwise, move it, or settle it: `state` is `kept`, `cancelled`, or `open` once more.

        Raises:
            NotFound: there is none, or what asked for it was forgotten.
            InvalidInput: as `make`; or it is to wait again for a moment that is past.
        """
        now = now or datetime.now(UTC)
        found = await self.get(owner, promise_id, now)
        zone = await self._zone(owner, timezone or found.timezone)
        moved = when is not None or timezone is not None
        occasion = await self.occasion(owner, found.said if when is None else when, now, zone) if moved else None
        values = {**vars(owner), "id": promise_id}

        async def change(connection: Connection) -> None:
            row = await locked(connection, values)
            if row is None:
                raise NotFound(f"There is no promise {promise_id}.")
            new = {name: row[name] for name in (*FIELDS, "due_at", "event")}
            if text is not None:
                new["text"] = self._text(text)
            if occasion is not None:
                said = (found.said if when is None else when).strip()
                new |= {"said": said, "rule": occasion.rule, "due_at": occasion.at, "state": "open"}
                new |= {"timezone": zone, "event": "changed" if occasion.follows else None}
            if state is not None:
                new |= {"state": state, "event": None if state != row["state"] else new["event"]}
            if new["state"] == "open" and row["state"] != "open" and new["due_at"] <= now:
                raise InvalidInput("when", "is needed: its moment is past")
            if all(new[name] == row[name] for name in new):
                return
            await connection.execute(sql.CHANGE, {**values, **sealed(new)})
            kind = {"kept": "done", "cancelled": "cancel"}.get(state or "", "move")
            old = logged(row)
            why = placed(trigger, row["conversation_id"])
            await note(self._log, connection, owner, kind, old, {**logged(new), "id": str(promise_id)}, why)

        await self._database.transact(owner.tenant_id, change)
        return await self.get(owner, promise_id, now)

    async def conversation(self, owner: Owner, *, conversation_id: UUID | None, session: str | None) -> UUID:
        """Return the id of a conversation of the user's. Raises `NotFound` if the user has none of this id or
        name."""
        values = {**vars(owner), "conversation_id": conversation_id, "session": session}
        found = await self._database.fetch(owner.tenant_id, sql.CONVERSATION_NAMED, values, tuple_row)
        if not found:
            raise NotFound(f"There is no conversation {conversation_id or session}.")
        return UUID(str(found[0][0]))

    async def _page(
        self,
        owner: Owner,
        about: Mapping[str, Any],
        after: tuple[datetime, UUID] | None,
        limit: int,
        now: datetime | None,
    ) -> Sequence[Promise]:
        values = {
            **vars(owner),
            **{"id": None, "state": None, "visible": False},
            **page_after(after, limit),
            "expert_id": None,
            **about,
        }
        now = now or datetime.now(UTC)
        rows = await self._database.fetch(owner.tenant_id, sql.PAGE, values, dict_row)
        if any(row["event"] == "changed" for row in rows):
            await self.following.follow(owner.tenant_id, owner.user_id, now)
            rows = await self._database.fetch(owner.tenant_id, sql.PAGE, values, dict_row)
        return [each for row in rows if (each := promise_of(row, now)) is not None]

    async def _zone(self, owner: Owner, timezone: str | None) -> str:
        if timezone is None:
            found = await self._database.fetch(owner.tenant_id, sql.ZONE, vars(owner), tuple_row)
            if not found:
                raise NotFound("There is no such user.")
            return str(found[0][0])
        try:
            time_zone(timezone)
        except BadTimeZone as error:
            raise InvalidInput("timezone", str(error)) from error
        return timezone

    def _text(self, text: str) -> str:
        kept = " ".join(self._secrets.without(text).split())
        if not kept or len(kept) > LONGEST_TEXT:
            raise InvalidInput("text", f"needs 1 to {LONGEST_TEXT} characters")
        return kept


def promised_change(turn: OpenTurn, asked: PlainPromise) -> MemoryChange:
    """Return what a turn tells of a promise that its message asks for in plain form."""
    items = [told_of(asked.at, turn.timezone, asked.text)]
    summary = told("promise", items, language_of([asked.quote]))
    return MemoryChange(kind="promise", summary=summary, operation_id=str(turn.turn_id), items=items)
