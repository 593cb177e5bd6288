"""Units of memory as they are indexed."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

from services.memory.episodes.episode import IndexedUnit, Scope

SAID_AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def unit_of(scope: Scope, text: str, terms: Sequence[str], embedding: Sequence[float]) -> IndexedUnit:
    unit_id: UUID = uuid4()
    return IndexedUnit(
        episode_id=unit_id,
        unit_id=unit_id,
        tenant_id=scope.tenant_id,
        user_id=scope.user_id,
        expert_id=scope.expert_id,
        space_id=None,
        conversation_id=scope.conversation_id,
        episode_type="turn",
        importance=0.5,
        origin="user_said",
        created_at=SAID_AT,
        episode_at=SAID_AT,
        role="user",
        speaker=None,
        external_id=None,
        source_message_ids=[unit_id],
        source_count=1,
        message_id=unit_id,
        text=text,
        content_hash=None,
        is_living=True,
        terms=terms,
        embedding=embedding,
    )
