"""What of a plan waits for the user: changes whose words come from foreign content that a turn has read."""

from collections.abc import Sequence

import structlog

from services.memory.agent.plan import CoreChange, Forgetting, NewMemory, Plan, Planned, texts_of
from services.memory.agent.store import AgentStore, EarlierMessage, Exchange
from services.memory.editor import EditContext
from services.memory.operations import Trigger
from services.memory.proposals import EditKind, Proposals
from services.memory.trust import Read, own_words, pasted_words, rests_on_user

_EARLIER = 6
"""Preceding messages that the model was shown."""

log = structlog.get_logger(__name__)


class Consent:
    """Takes out of plans what does not rest on the user's words, and lets it wait as proposals."""

    def __init__(self, store: AgentStore, proposals: Proposals) -> None:
        self._store = store
        self._proposals = proposals

    async def given(self, exchanges: Sequence[Exchange], plan: Plan, trigger: Trigger) -> Plan:
        """Return the part of a plan that may be carried out at once.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        if not plan or not any(each.origin or pasted_words(each.said) for each in exchanges):
            return plan
        read = _read(exchanges, await self._store.earlier(exchanges[0], limit=_EARLIER))
        kept: Plan = []
        for planned in plan:
            if _rests(planned, read):
                kept.append(planned)
            elif (proposal := _proposal(planned)) is not None:
                first = exchanges[0]
                editing = EditContext(first.owner, first.conversation_id, first.message_id, trigger)
                await self._proposals.add(editing, *proposal)
        if len(kept) < len(plan):
            log.info("changes wait for the user", turn_id=str(exchanges[0].turn_id), changes=len(plan) - len(kept))
        return kept


def _read(exchanges: Sequence[Exchange], earlier: Sequence[EarlierMessage]) -> Read:
    said = [each.content for each in earlier if each.role == "user"] + [each.said for each in exchanges]
    strictly = [each for each in exchanges if each.origin in ("document", "tool")]
    pasted = [text for text in map(pasted_words, said) if text]
    answers = [each.answer for each in exchanges if each.origin in ("import", "operator")]
    return Read(
        said=[own_words(each) for each in said],
        foreign=[*pasted, *(each.answer for each in strictly)],
        remembered=[*answers, *(each.content for each in earlier if each.role == "assistant" and each.origin)],
    )


def _rests(planned: Planned, read: Read) -> bool:
    if isinstance(planned, CoreChange):
        value = "; ".join(texts_of(planned.value))
        return (not value or rests_on_user(value, read)) and (
            not planned.old or rests_on_user(planned.old, read, removes=True)
        )
    if isinstance(planned, NewMemory):
        return planned.replaces is None and rests_on_user(planned.content, read)
    return isinstance(planned, Forgetting) and rests_on_user(planned.target, read, removes=True)


def _proposal(planned: Planned) -> tuple[EditKind, str, str] | None:
    """Return kind, text and what is replaced; None for a memory that is only to be retired, which stays."""
    if isinstance(planned, CoreChange):
        value = "; ".join(texts_of(planned.value))
        return ("remember", value, planned.old or "") if value else ("forget", planned.old or planned.field, "")
    if isinstance(planned, NewMemory):
        return "remember", planned.content, str(planned.replaces or "")
    return ("forget", planned.target, "") if isinstance(planned, Forgetting) else None
