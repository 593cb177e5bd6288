"""Changes of memory that are made at once, by a model's tool, the API or a command: logged and undoable."""

from dataclasses import dataclass, replace
from typing import Literal, Self
from uuid import UUID, uuid4

from psycopg.rows import tuple_row
from uuid_utils.compat import uuid7

from services.memory.blocks import Owner
from services.memory.commands import statements as sql
from services.memory.commands.change_wording import nothing_found, summary_of
from services.memory.commands.effects import Effects, plan_of
from services.memory.commands.reading import ResolutionRequest
from services.memory.commands.recogniser import kind_of
from services.memory.commands.resolution import Resolution
from services.memory.operations import Trigger
from services.memory.removal.hiding import Retraction
from services.platform.database_errors import again_if_contended
from services.platform.postgres import Database
from services.text.language import Language, language_of
from state.memory import Command, MemoryChange, PlannedChange, Recognised

Kept = Literal["remember", "standing"]
"""Kinds of what is kept: a fact, or a wish about all answers."""


@dataclass(frozen=True)
class EditContext:
    """For whom memory is changed, and in which turn."""

    owner: Owner
    conversation_id: UUID
    message_id: UUID
    trigger: Trigger

    @classmethod
    def outside_of_turns(cls, owner: Owner, trigger: Trigger) -> Self:
        """A change that no message asks for: its ids are those of no message."""
        return cls(owner, uuid4(), uuid4(), trigger)


class MemoryEditor:
    """Keeps, corrects and forgets what a caller names."""

    def __init__(self, database: Database, resolution: Resolution, retraction: Retraction) -> None:
        self._database = database
        self._resolution = resolution
        self._retraction = retraction

    async def remember(
        self, editing: EditContext, text: str, *, replaces: str = "", kind: Kept | None = None
    ) -> MemoryChange:
        """Keep a fact or a standing wish; with `replaces`, in place of what is remembered otherwise.

        Args:
            editing: for whom.
            text: what to keep.
            replaces: id or words of what it replaces; where nothing matches, the text is kept all the same.
            kind: a fact (`remember`) or a wish about all answers (`standing`); None = as the text reads.

        Raises:
            InvalidInput: it cannot be stored.
            NotFound: the user was erased.
            DatabaseUnavailable: the database does not answer.
        """
        if replaces:
            corrected = await self.correct(editing, replaces, text, kind=kind)
            if corrected["operation_id"] is not None:
                return corrected
        kept = await self._plan_to_keep(editing, text, kind)
        if kept is None:
            return _unchanged("remember", text)
        await self._commit(editing, kept)
        return kept["change"]

    async def correct(
        self, editing: EditContext, what: str, text: str, *, kind: Kept | None = None
    ) -> MemoryChange:
        """Replace what an id or a description names by a text, in one transaction; `items` is what was replaced.

        Without `operation_id` in the result nothing matched, and nothing changed.

        Raises:
            InvalidInput: the text cannot be stored.
            NotFound: the user was erased.
            DatabaseUnavailable: the database does not answer.
        """
        # What is said in a space stays there: what all spaces share is not corrected by it.
        planned = await self._plan_to_remove(editing, what, reaches_shared=False)
        if planned["change"]["operation_id"] is None:
            return planned["change"]
        kept = await self._plan_to_keep(editing, text, kind)
        if kept is not None:
            planned["items"] += kept["items"]
            planned["written"] += kept["written"]
        planned["change"] = MemoryChange(
            kind="correct",
            summary=summary_of("correct", [text], language_of([text])),
            operation_id=planned["change"]["operation_id"],
            items=planned["change"]["items"],
        )
        await self._commit(editing, planned)
        return planned["change"]

    async def forget(self, editing: EditContext, what: str) -> MemoryChange:
        """Remove what an id or a description names, from core memory and from recall; messages stay to be read.

        Without `operation_id` in the result nothing matched, and nothing changed.

        Raises:
            NotFound: the user was erased.
            DatabaseUnavailable: the database does not answer.
        """
        planned = await self._plan_to_remove(editing, what)
        await self._commit(editing, planned)
        return planned["change"]

    async def preview_of_forget(self, editing: EditContext, what: str) -> PlannedChange:
        """What `forget` would do, without doing it.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        return await self._plan_to_remove(editing, what)

    async def _plan_to_keep(self, editing: EditContext, text: str, kind: Kept | None) -> PlannedChange | None:
        """The plan to keep a text; None where it has nothing to keep."""
        if kind is None:
            kind = "standing" if kind_of(text) == "standing" else "remember"
        planned = await self._resolution.plan(_asking(editing, text, Command(kind, "stated", target=text)))
        return planned[0] if planned else None

    async def _plan_to_remove(
        self, editing: EditContext, what: str, *, reaches_shared: bool = True
    ) -> PlannedChange:
        what = what.replace("\x00", "")
        asking = replace(_asking(editing, what), reaches_shared=reaches_shared)
        try:
            episode_id = UUID(what.strip())
        except ValueError:
            return await self._resolution.named(asking, "forget", what)
        by_id = await self._by_id(editing, episode_id, reaches_shared=reaches_shared)
        # An id of no memory is not looked for by its digits: whatever contains some of them would go.
        return by_id or plan_of(Command("forget", "stated", target=what), Effects(), asking)

    @again_if_contended
    async def _commit(self, editing: EditContext, planned: PlannedChange) -> None:
        planned["own"] = "keep"
        if planned["change"]["operation_id"] is None:
            return
        async with self._database.tenant(editing.owner.tenant_id) as connection:
            await self._retraction.commit(connection, editing.owner, planned, editing.trigger)

    async def _by_id(
        self, editing: EditContext, episode_id: UUID, *, reaches_shared: bool
    ) -> PlannedChange | None:
        """The plan for a memory that is named by its id; None where the user has none of this id."""
        values = {**vars(editing.owner), "id": episode_id, "reaches_shared": reaches_shared}
        rows = await self._database.fetch(editing.owner.tenant_id, sql.ONE_EPISODE, values, tuple_row)
        if not rows:
            return None
        text, message_ids = rows[0]
        language = language_of([text])
        return PlannedChange(
            change=MemoryChange(
                kind="forget",
                summary=summary_of("forget", [text], language),
                operation_id=str(uuid7()),
                items=[text],
            ),
            target=text,
            messages=[{"message_id": str(each), "memory_text": None} for each in message_ids],
            episodes=[str(episode_id)],
            items=[],
            written=[],
            own="keep",
            own_text=None,
            gives_away="",
            reaches_shared=reaches_shared,
        )


def _asking(editing: EditContext, text: str, *commands: Command) -> ResolutionRequest:
    return ResolutionRequest(
        owner=editing.owner,
        conversation_id=editing.conversation_id,
        message_id=editing.message_id,
        message=text,
        language=language_of([text]),
        recognised=Recognised(commands),
    )


def _unchanged(kind: str, text: str) -> MemoryChange:
    language: Language = language_of([text])
    return MemoryChange(
        kind="forget" if kind == "forget" else "remember",
        summary=nothing_found(text, (), language),
        operation_id=None,
        items=[],
    )
