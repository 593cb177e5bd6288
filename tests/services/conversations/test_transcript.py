from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from services.bootstrap import Services
from services.conversations.turn import OpenTurn
from services.identity.tenants import DEFAULT_TENANT
from tests.support.turns import new_turn

pytestmark = pytest.mark.anyio

START = datetime(2026, 1, 1, tzinfo=UTC)


async def _insert(
    services: Services,
    turn: OpenTurn,
    content: str,
    at: datetime,
    *,
    completed: bool = True,
    tokens: int = 10,
) -> UUID:
    message_id = uuid7()
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(
            """
            INSERT INTO messages
                (id, tenant_id, conversation_id, turn_id, role, content, completed, token_count, created_at)
            VALUES (%s, %s, %s, %s, 'user', %s, %s, %s, %s)
            """,
            [message_id, DEFAULT_TENANT, turn.conversation_id, turn.turn_id, content, completed, tokens, at],
        )
    return message_id


async def test_pages_hold_every_message_once_in_order_though_times_are_equal(services: Services) -> None:
    turn = await services.turns.open(new_turn("first"))
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("UPDATE messages SET created_at = %s", [START])
    for number in range(9):
        await _insert(services, turn, f"equal {number}", START + timedelta(seconds=number // 4))
    seen: list[UUID] = []
    after = None
    while page := await services.transcript.messages(DEFAULT_TENANT, turn.conversation_id, after=after, limit=3):
        seen += [message.id for message in page]
        after = (page[-1].created_at, page[-1].id)
    whole = await services.transcript.messages(DEFAULT_TENANT, turn.conversation_id, after=None, limit=100)
    assert seen == [message.id for message in whole]
    assert len(set(seen)) == 10
