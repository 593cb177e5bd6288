"""Turns: one user message and everything that answers it.

A turn is opened together with its user's message before anything can fail, and ended exactly once,
in the transaction that stores its answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, cast
from uuid import UUID

from psycopg.rows import dict_row, tuple_row
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.conversations import turn_sql
from services.conversations.turn import (
    WITHOUT_MEMORY,
    WITHOUT_WRITING,
    TurnOutcome,
    TurnRequest,
    TurnStatus,
    with_variants,
)
from services.conversations.turn_records import TurnRecords
from services.conversations.turn_values import (
    KEY,
    KEY_OF_ANOTHER_MESSAGE,
    names_of,
    opening_values,
    other_space,
    outcome_values,
    refuse_conflict,
    turn_of_row,
)
from services.errors import BrokenReference, Conflict, ConversationExists, DatabaseContended, InvalidInput
from services.experiments.assignment import RunningExperiment, assign, running_experiments
from services.jobs.queue import JobQueue
from services.jobs.tasks import ARCHIVE, SUMMARISE
from services.memory.core.blocks import Owner
from services.memory.operations import Trigger
from services.memory.planning.wording import told_changes
from services.memory.proposals.questions import OpenQuestions
from services.memory.removal.hiding import Hiding
from services.memory.waiting import defer_filing
from services.platform.connections import Connection
from services.platform.patience import beside_the_loop
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.platform.tracing import causes
from services.reflection.schedule import REFLECT
from services.summaries.schedule import ARCHIVE_SOON
from services.text.language import language_of
from services.text.secrets import Secrets
from services.validation import without_nul
from services.visits.visit import SUMMARISE_VISIT, VisitSchedule, defer_days
from state.conversation import each_once
from state.memory import ForeignOrigin
from state.turn import OpenTurn

_IN_A_STEP = 1024 * 1024
"""Characters of images whose digests are made in one step of the event loop."""
_LONG = 5_000
"""Minimum characters of an answer for which a thread looks for secrets in it."""


class Turns(TurnRecords):
    """Opens, ends and reads turns."""

    def __init__(
        self,
        database: Database,
        jobs: JobQueue,
        *,
        visits: VisitSchedule | None = None,
        reflection: bool = False,
        filing_quiet_s: float | None = None,
        default_timezone: str = "UTC",
        default_locale: str | None = None,
        hiding: Hiding | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        """Take when visits end and are summarised (None = default), whether experts reflect on turns, the seconds
        after which what was said is filed (None = never), the time zone and locale of users who have none, and
        what changes memory (None = nothing)."""
        super().__init__(database)
        self._jobs = jobs
        self._visits = visits or VisitSchedule()
        self._reflection = reflection
        self._filing_quiet_s = filing_quiet_s
        self._default_timezone = default_timezone
        self._default_locale = default_locale
        self._hiding = hiding
        self._secrets = secrets or Secrets()

    async def open(self, request: TurnRequest) -> OpenTurn:
        """Store the user's message and open its turn; create the user and the conversation if needed.

        Raises:
            Conflict: also if a turn with this idempotency key has been opened before.
            InvalidInput, DatabaseUnavailable: as `open_or_find`.
        """
        turn = await self.open_or_find(request)
        if isinstance(turn, UUID):
            raise Conflict("There is a turn with this idempotency key.")
        return turn

    async def open_or_find(self, request: TurnRequest) -> OpenTurn | UUID:
        """Open a turn, or return the id of the one opened with an equal idempotency key in this conversation.

        Raises:
            InvalidInput: there is no such expert or knowledge base, the key belongs to another message, or the
        conversation to another space.
            ConversationExists: the turn must be the first of its conversation, and is not; nothing was stored.
            Conflict: the conversation has an unfinished turn and the message may not wait, or too many do.
            DatabaseUnavailable: nothing was stored, unless the connection broke during the commit.
        """
        tenant_id, asked = request.tenant_id, request.input
        turn_id, message_id = uuid7(), uuid7()
        values = {
            **await beside_the_loop(
                partial(opening_values, request, turn_id, message_id, self._secrets),
                characters=len(asked["message"]) + sum(map(len, asked.get("images", ()))),
                most=_IN_A_STEP,
            ),
            "default_timezone": self._default_timezone,
            "process": self._database.process,
        }
        lock = f"{tenant_id} {asked['user_id']} {asked['session_id']}"
        while True:
            try:
                found = await self._database.fetch(
                    tenant_id, turn_sql.OPEN, values, dict_row, lock=lock, generic=True
                )
            except BrokenReference:  # the user was just erased, and is created again
                continue
            if not found:
                raise await self._not_found(values)
            row = found[0]
            if request.must_begin and row["of_space"] is not None and not row["begins"]:
                raise ConversationExists
            if (known := row["known_turn_id"]) is not None:
                if row["known_differs"]:
                    raise InvalidInput(KEY, KEY_OF_ANOTHER_MESSAGE)
                return UUID(str(known))
            if row["user_id"] and row["conversation_id"] and row["timezone"]:
                break
            if row["of_space"] is False:
                raise await self._other_space(values)
            refuse_conflict(row, request)
        more: dict[str, Any] = {"turn_id": turn_id, "tenant_id": tenant_id, "user_message_id": message_id}
        if row["paused_turns"]:
            more["paused"] = row["paused_turns"]
        if row["waiting"]:  # the turns before it may still change memory
            more |= {"asks": True, "has_core_memory": True, "memory_generation": None}
        elif row["untold_changes"]:
            more["told"], more["untold"] = told_changes(row["untold_changes"], language_of([asked["message"]]))
        turn = turn_of_row(row, asked, self._default_locale, **more)
        if not row["running_experiments"]:
            return turn
        return await self._with_variants(turn, running_experiments(row["running_experiments"]))

    async def unstored(self, request: TurnRequest, *, reads_memory: bool) -> OpenTurn:
        """Open a turn that is not stored; with `reads_memory`, it may read the user's memory. Raises
        `InvalidInput` if there is no such expert, or no such knowledge base."""
        values = {**names_of(request), "reads": reads_memory}
        found = await self._database.fetch(request.tenant_id, turn_sql.UNSTORED, values, dict_row)
        if not found:
            raise _no_expert(values)
        await self._check_knowledge_base(values)
        row = found[0]
        knows = row["user_id"] is not None
        turn = turn_of_row(
            row,
            request.input,
            self._default_locale,
            turn_id=uuid7(),
            tenant_id=request.tenant_id,
            user_id=row["user_id"] or uuid7(),
            conversation_id=uuid7(),
            user_message_id=uuid7(),
            parts_off=each_once(row["parts_off"], WITHOUT_WRITING if knows else WITHOUT_MEMORY),
            begins=True,
            remembers=knows,
            has_core_memory=knows,
            stored=False,
        )
        return replace(turn, timezone=turn.timezone or self._default_timezone)

    async def _with_variants(self, turn: OpenTurn, running: Sequence[RunningExperiment]) -> OpenTurn:
        """Return the turn with the variants assigned to its user, which are recorded."""
        assignment = assign(turn.tenant_id, turn.user_id, turn.expert, running)
        if not assignment.variants:
            return turn
        values = {"turn_id": turn.turn_id, "tenant_id": turn.tenant_id, "experiments": Jsonb(assignment.variants)}
        await self._database.fetch(turn.tenant_id, turn_sql.TAG, values, tuple_row)
        return with_variants(turn, assignment)

    async def _not_found(self, values: Mapping[str, Any]) -> InvalidInput:
        """Return the error for the part of a request that does not exist."""
        try:
            await self._check_knowledge_base(values)
        except InvalidInput as error:
            return error
        return _no_expert(values)

    async def _check_knowledge_base(self, values: Mapping[str, Any]) -> None:
        prefix = values["kb_prefix"]
        if prefix and not await self._database.fetch(
            values["tenant_id"], turn_sql.KNOWLEDGE_BASE, values, tuple_row
        ):
            raise InvalidInput("kb_prefix", f"there is no knowledge base with the prefix {prefix!r}")

    async def _other_space(self, values: Mapping[str, Any]) -> InvalidInput:
        """Return the error for a conversation that does not belong to the requested space."""
        found = await self._database.fetch(values["tenant_id"], turn_sql.SPACE_OF, values, tuple_row)
        return other_space(found[0][0] if found else None)

    async def end(self, turn: OpenTurn, outcome: TurnOutcome) -> ForeignOrigin | None:
        """End a running turn: its answer, its row and the jobs that it causes, in one transaction.

        An outcome without text stores no message. Ending the turn again, as after a commit whose acknowledgement
        was lost, changes nothing.

        Returns:
            The least trusted origin of what its prompt showed; None = nothing foreign, or it had ended before.

        Raises:
            Conflict: the turn has ended with another outcome, or another process runs it.
        """
        return await self._end(turn.tenant_id, turn.turn_id, turn.answer_message_id, outcome, turn)

    async def end_elsewhere(
        self,
        tenant_id: UUID,
        turn_id: UUID,
        outcome: TurnOutcome,
        *,
        abandoned: bool = False,
        ends: TurnStatus = "running",
    ) -> None:
        """End a turn of another process, `abandoned` only if that process is gone; `ends` is its status so far.
        Raises `Conflict` if the turn has ended, or its process is alive."""
        await self._end(tenant_id, turn_id, uuid7(), outcome, abandoned=abandoned, ends=ends)

    async def _end(
        self,
        tenant_id: UUID,
        turn_id: UUID,
        answer_message_id: UUID,
        outcome: TurnOutcome,
        turn: OpenTurn | None = None,
        *,
        abandoned: bool = False,
        ends: TurnStatus = "running",
    ) -> ForeignOrigin | None:
        content = without_nul(outcome.answer)
        kept = await beside_the_loop(partial(self._secrets.without, content), characters=len(content), most=_LONG)
        values = {
            "turn_id": turn_id,
            "tenant_id": tenant_id,
            "message_id": answer_message_id if content else None,
            "abandoned": abandoned,
            "ends": ends,
            "process": self._database.process if turn is not None else None,
            "asking": self._database.process,
            "visit_id": uuid7(),
            "visit_idle": self._visits.idle,
            "reflection": self._reflection and outcome.status == "completed",
            "alone": False,
            "files": self._files(outcome) and not causes(),
            "to_file": self._files(outcome, later=True),
            "told": list(turn.untold) if turn is not None and outcome.status == "completed" else [],
            "filing_delay": timedelta(seconds=self._filing_quiet_s or 0),
            **outcome_values(outcome, content, kept),
        }

        origin: ForeignOrigin | None = None

        async def end(connection: Connection, found: list[tuple[Any, ...]]) -> None:
            nonlocal origin
            if not found:
                again = {name: values[name] for name in ("turn_id", "tenant_id", "status", "message_id")}
                if await (await connection.execute(turn_sql.ENDED_WITH, again)).fetchone():
                    return
                raise Conflict("This turn has ended already.")
            visit_before, messages_before, origin, reflects, _ = found[0]
            if visit_before and self._visits.is_summarised(messages_before):
                await self._jobs.defer(connection, SUMMARISE_VISIT, tenant_id=tenant_id, visit_id=visit_before)
            if turn is None:
                return
            if self._hiding:
                trigger = Trigger("user", turn.user_message_id, turn.conversation_id, turn.turn_id, turn.expert_id)
                for planned in outcome.memory:
                    owner = Owner.of_turn(turn)
                    await self._hiding.commit(connection, owner, planned, trigger, but=turn.conversation_id)
            if outcome.asked:
                await OpenQuestions.note_asked(connection, tenant_id, outcome.asked, turn_id)
            if outcome.status == "completed":
                await self._defer_jobs(connection, turn, outcome, reflects=reflects)

        if not (turn is not None and self._defers(turn, outcome)) and (
            ended := await self._end_alone(tenant_id, values)
        ):
            return cast("ForeignOrigin | None", ended[0][2])
        await self._database.transact_after(tenant_id, Query(turn_sql.END, values, tuple_row), end)
        return origin

    async def _end_alone(self, tenant_id: UUID, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """End a turn in one round trip; empty = nothing was changed: it causes a job, or cannot be ended now."""
        values = {**values, "alone": True}
        try:
            return await self._database.fetch(tenant_id, turn_sql.END, values, tuple_row, generic=True)
        except DatabaseContended:
            return []

    async def _defer_jobs(
        self, connection: Connection, turn: OpenTurn, outcome: TurnOutcome, *, reflects: bool
    ) -> None:
        """Queue the jobs that a completed turn causes, in its transaction."""
        tenant_id, of = turn.tenant_id, turn.conversation_id
        for task in _tasks_of_conversation(outcome):
            # A burst of turns queues one job, and a conversation's jobs of a kind run one after the other.
            await self._jobs.defer(connection, task, tenant_id=tenant_id, one_of=of, conversation_id=of)
        if outcome.visits_to_summarise and self._visits.summaries:
            await defer_days(self._jobs, connection, tenant_id, outcome.visits_to_summarise)
        if self._files(outcome) and self._filing_quiet_s is not None and causes():
            await defer_filing(self._jobs, connection, tenant_id, turn.user_id, delay_s=self._filing_quiet_s)
        if self._reflection and reflects:
            lock = f"{REFLECT}:{turn.user_id}"
            await self._jobs.defer(connection, REFLECT, tenant_id=tenant_id, lock=lock, turn_id=turn.turn_id)

    def _files(self, outcome: TurnOutcome, *, later: bool = False) -> bool:
        files = later if outcome.files is None else outcome.files
        return files and outcome.status == "completed" and self._filing_quiet_s is not None

    def _defers(self, turn: OpenTurn, outcome: TurnOutcome) -> bool:
        """Return whether the end of a turn certainly changes memory or causes jobs, besides filing. A job that
        is linked to the trace of its cause is queued by a separate statement."""
        return (
            (turn.reflects and self._reflection and outcome.status == "completed")
            or (self._files(outcome) and bool(causes()))
            or outcome.asked is not None
            or bool(outcome.memory or _tasks_of_conversation(outcome) or outcome.visits_to_summarise)
        )


def _tasks_of_conversation(outcome: TurnOutcome) -> list[str]:
    """Return the tasks that keep the conversation's prompts within their limits."""
    due = {SUMMARISE: outcome.summary_due, ARCHIVE: outcome.context_filled >= ARCHIVE_SOON}
    return [task for task, is_due in due.items() if is_due]


def _no_expert(values: Mapping[str, Any]) -> InvalidInput:
    return InvalidInput("expert", f"there is no expert named {values['expert']!r}")
