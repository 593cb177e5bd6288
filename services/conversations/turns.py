"""Turns: one user message and everything that answers it.

A turn is opened together with its user's message before anything can fail, and ended exactly once,
in the transaction that stores its answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from psycopg.rows import class_row, tuple_row
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from services.conversations import turn_sql
from services.conversations.turn import (
    WITHOUT_MEMORY,
    WITHOUT_WRITING,
    KnownTurn,
    NewTurn,
    OpenTurn,
    TurnOutcome,
)
from services.conversations.turn_records import TurnRecords
from services.conversations.turn_values import (
    KEY,
    KEY_OF_ANOTHER_MESSAGE,
    OpeningRow,
    UnstoredRow,
    opened_turn,
    opening_values,
    other_space,
    outcome_values,
    refuse_conflict,
)
from services.conversations.values import without_nul
from services.errors import BrokenReference, Conflict, ConversationExists, DatabaseContended, InvalidInput
from services.experiments.assignment import RunningExperiment, assign, running_experiments
from services.jobs.queue import JobQueue
from services.memory.blocks import Owner
from services.memory.filing_store import defer_filing
from services.memory.open_questions import OpenQuestions
from services.memory.operations import Trigger
from services.memory.removal.hiding import EndedExchange, Hiding
from services.platform.connections import Connection
from services.platform.patience import beside_the_loop
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from services.platform.tracing import causes
from services.reflection.schedule import REFLECT
from services.text.secrets import Secrets
from services.visits.visit import SUMMARISE_VISIT, VisitSchedule, defer_days

_IN_A_STEP = 1024 * 1024
"""Characters of images whose digests are made in one step of the event loop."""
_LONG = 5_000
"""Characters of an answer from which a thread looks for secrets in it."""


@dataclass(frozen=True)
class _Ended:
    """A turn that was ended, and the visit that its message had ended."""

    conversation_id: UUID
    user_id: UUID
    expert_id: UUID
    space_id: UUID | None
    user_message_id: UUID
    visit_before_id: UUID | None
    visit_before_messages: int
    reflects: bool | None
    notified: str | None


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

    async def open(self, new: NewTurn) -> OpenTurn:
        """Store the user's message and open its turn; create the user and the conversation if needed.

        Raises:
            Conflict: also if a turn with this idempotency key has been opened before.
            InvalidInput, DatabaseUnavailable: as `open_or_find`.
        """
        turn = await self.open_or_find(new)
        if isinstance(turn, KnownTurn):
            raise Conflict("There is a turn with this idempotency key.")
        return turn

    async def open_or_find(self, new: NewTurn) -> OpenTurn | KnownTurn:
        """The same, or return the turn that was opened with the same idempotency key in this conversation.

        Raises:
            InvalidInput: there is no such expert or knowledge base, the key belongs to another message, or the
        conversation to another space.
            ConversationExists: the turn must be the first of its conversation, and is not; nothing was stored.
            Conflict: the conversation has an unfinished turn and the message may not wait, or too many do.
            DatabaseUnavailable: nothing was stored, unless the connection broke during the commit.
        """
        turn_id, message_id = uuid7(), uuid7()
        values = {
            **await beside_the_loop(
                partial(opening_values, new, turn_id, message_id, self._secrets),
                characters=len(new.content) + sum(map(len, new.images)),
                most=_IN_A_STEP,
            ),
            "default_timezone": self._default_timezone,
        }
        lock = f"{new.tenant_id} {new.external_user_id} {new.session_key}"
        while True:
            try:
                found = await self._database.fetch(
                    new.tenant_id, turn_sql.OPEN, values, class_row(OpeningRow), lock=lock, generic=True
                )
            except BrokenReference:  # the user was erased at this moment, and is created again
                continue
            if not found:
                raise await self._not_found(new)
            one = found[0]
            if new.must_begin and one.of_space is not None and not one.begins:
                raise ConversationExists
            if one.known_turn_id is not None and one.known_differs:
                raise InvalidInput(KEY, KEY_OF_ANOTHER_MESSAGE)
            if one.known_turn_id is not None:
                return KnownTurn(one.known_turn_id, new.tenant_id)
            turn = opened_turn(new, one, turn_id, message_id, default_locale=self._default_locale)
            if turn is not None:
                break
            if one.of_space is False:
                raise await self._other_space(new)
            refuse_conflict(one, new)
        if not one.experiments:
            return turn
        return await self.with_variants(turn, running_experiments(one.experiments))

    async def unstored(self, new: NewTurn, *, reads_memory: bool) -> OpenTurn:
        """Open a turn that is not stored; with `reads_memory`, it may read the user's memory.

        Raises:
            InvalidInput: there is no such expert, or no such knowledge base.
        """
        values = {
            "tenant_id": new.tenant_id,
            "expert": new.expert,
            "external_id": new.external_user_id,
            "space": new.space,
            "reads": reads_memory,
        }
        found = await self._database.fetch(new.tenant_id, turn_sql.UNSTORED, values, class_row(UnstoredRow))
        if not found:
            raise InvalidInput("expert", f"there is no expert named {new.expert!r}")
        await self._check_knowledge_base(new)
        one = found[0]
        knows = one.user_id is not None
        return OpenTurn(
            turn_id=uuid7(),
            tenant_id=new.tenant_id,
            user_id=one.user_id or uuid7(),
            conversation_id=uuid7(),
            user_message_id=uuid7(),
            answer_message_id=uuid7(),
            timezone=new.timezone or one.timezone or self._default_timezone,
            locale=new.locale or one.locale or self._default_locale,
            expert_id=one.expert_id,
            expert=one.expert,
            system_prompt=one.system_prompt,
            model=one.model,
            policy=one.policy,
            parts_off=list(dict.fromkeys([*one.parts_off, *(WITHOUT_WRITING if knows else WITHOUT_MEMORY)])),
            space_id=one.space_id,
            begins=True,
            remembers=knows,
            core_memory_generation=None if knows else 0,
            stored=False,
        )

    async def with_variants(self, turn: OpenTurn, running: Sequence[RunningExperiment]) -> OpenTurn:
        """Return the turn with the variants assigned to its user, which are recorded."""
        assignment = assign(turn.tenant_id, turn.user_id, turn.expert, running)
        if not assignment.variants:
            return turn
        values = {
            "turn_id": turn.turn_id,
            "tenant_id": turn.tenant_id,
            "experiments": Jsonb(assignment.variants),
        }
        await self._database.fetch(turn.tenant_id, turn_sql.TAG, values, tuple_row)
        return turn.given(assignment)

    async def _not_found(self, new: NewTurn) -> InvalidInput:
        """What of a request there is not."""
        try:
            await self._check_knowledge_base(new)
        except InvalidInput as error:
            return error
        return InvalidInput("expert", f"there is no expert named {new.expert!r}")

    async def _check_knowledge_base(self, new: NewTurn) -> None:
        values = {"tenant_id": new.tenant_id, "kb_prefix": new.kb_prefix}
        if new.kb_prefix and not await self._database.fetch(
            new.tenant_id, turn_sql.KNOWLEDGE_BASE, values, tuple_row
        ):
            raise InvalidInput("kb_prefix", f"there is no knowledge base with the prefix {new.kb_prefix!r}")

    async def _other_space(self, new: NewTurn) -> InvalidInput:
        """That the conversation does not belong to the space that the request names."""
        values = {
            "tenant_id": new.tenant_id,
            "external_id": new.external_user_id,
            "session_key": new.session_key,
        }
        found = await self._database.fetch(new.tenant_id, turn_sql.SPACE_OF, values, tuple_row)
        return other_space(found[0][0] if found else None)

    async def end(
        self,
        tenant_id: UUID,
        turn_id: UUID,
        answer_message_id: UUID,
        outcome: TurnOutcome,
        *,
        abandoned: bool = False,
    ) -> None:
        """End a running turn: its answer, its row and the jobs that it causes, in one transaction.

        An outcome without text stores no message. Ending the turn again with the same `answer_message_id`, as
        after a commit whose acknowledgement was lost, changes nothing. With `abandoned`, it is ended only if its
        process is gone.

        Raises:
            Conflict: the turn has ended with another outcome, or its process is alive.
        """
        content = without_nul(outcome.answer)
        message_id = answer_message_id if content else None
        kept = await beside_the_loop(partial(self._secrets.without, content), characters=len(content), most=_LONG)
        values = {
            "turn_id": turn_id,
            "tenant_id": tenant_id,
            "message_id": message_id,
            "abandoned": abandoned,
            "visit_id": uuid7(),
            "visit_idle": self._visits.idle,
            "reflection": self._reflection and outcome.status == "completed",
            "alone": False,
            "files": self._files(outcome) and not causes(),
            "filing_delay": timedelta(seconds=self._filing_quiet_s or 0),
            **outcome_values(outcome, content, kept),
        }

        async def end(connection: Connection, found: list[_Ended]) -> None:
            if not found:
                again = {name: values[name] for name in ("turn_id", "tenant_id", "status", "message_id")}
                if await (await connection.execute(turn_sql.ENDED_WITH, again)).fetchone():
                    return
                raise Conflict("This turn has ended already.")
            ended = found[0]
            if self._hiding:
                owner = Owner(tenant_id, ended.user_id, ended.expert_id, ended.space_id)
                exchange = EndedExchange(
                    turn_id, ended.conversation_id, ended.user_message_id, message_id, content
                )
                trigger = Trigger("user", ended.user_message_id, ended.conversation_id, turn_id, ended.expert_id)
                for planned in outcome.memory:
                    await self._hiding.commit(connection, owner, planned, trigger, exchange)
            if outcome.asked:
                await OpenQuestions.note_asked(connection, tenant_id, outcome.asked, turn_id)
            await self._defer_jobs(connection, tenant_id, turn_id, outcome, ended)

        if not self._defers(outcome) and await self._end_alone(tenant_id, values):
            return
        await self._database.transact_after(tenant_id, Query(turn_sql.END, values, class_row(_Ended)), end)

    async def _end_alone(self, tenant_id: UUID, values: Mapping[str, Any]) -> bool:
        """End a turn in one round trip; False = nothing was changed: it causes a job, or cannot be ended now."""
        values = {**values, "alone": True}
        try:
            ended = await self._database.fetch(tenant_id, turn_sql.END, values, class_row(_Ended), generic=True)
            return bool(ended)
        except DatabaseContended:
            return False

    async def _defer_jobs(
        self, connection: Connection, tenant_id: UUID, turn_id: UUID, outcome: TurnOutcome, ended: "_Ended"
    ) -> None:
        """Queue the jobs that the end of a turn causes, in its transaction."""
        if ended.visit_before_id and self._visits.is_summarised(ended.visit_before_messages):
            await self._jobs.defer(
                connection, SUMMARISE_VISIT, tenant_id=tenant_id, visit_id=ended.visit_before_id
            )
        if outcome.status != "completed":
            return
        for task in outcome.jobs:
            # A burst of turns queues one job, and a conversation's jobs of a kind run one after the other.
            of = ended.conversation_id
            await self._jobs.defer(connection, task, tenant_id=tenant_id, one_of=of, conversation_id=of)
        if outcome.visits_to_summarise and self._visits.summaries:
            await defer_days(self._jobs, connection, tenant_id, outcome.visits_to_summarise)
        if self._files(outcome) and self._filing_quiet_s is not None and causes():
            await defer_filing(self._jobs, connection, tenant_id, ended.user_id, delay_s=self._filing_quiet_s)
        if self._reflection and ended.reflects:
            lock = f"{REFLECT}:{ended.user_id}"
            await self._jobs.defer(connection, REFLECT, tenant_id=tenant_id, lock=lock, turn_id=turn_id)

    def _files(self, outcome: TurnOutcome) -> bool:
        return outcome.files and outcome.status == "completed" and self._filing_quiet_s is not None

    def _defers(self, outcome: TurnOutcome) -> bool:
        """Whether the end of a turn is known to change memory or to cause jobs, besides filing.

        A job that is to be linked to the trace that caused it is queued by a statement of its own.
        """
        return (
            (outcome.reflects and self._reflection)
            or (self._files(outcome) and bool(causes()))
            or outcome.asked is not None
            or bool(outcome.memory or outcome.jobs or outcome.visits_to_summarise)
        )
