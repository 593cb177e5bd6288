from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from services.bootstrap import Services
from services.conversations.turn import OpenTurn
from services.errors import NotFound
from services.identity.tenants import DEFAULT_TENANT
from tests.support.turns import exchange, new_turn

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


async def test_conversations_are_listed_newest_first_for_one_user_or_all(services: Services) -> None:
    for user, session in (("u-1", "a"), ("u-2", "b"), ("u-1", "c")):
        await exchange(services.turns, f"in {session}", "ok", external_user_id=user, session_key=session)
    every = await services.transcript.conversations(DEFAULT_TENANT, user_id=None, after=None, limit=10)
    assert [conversation.session_id for conversation in every] == ["c", "b", "a"]
    one = await services.transcript.conversations(DEFAULT_TENANT, user_id="u-1", after=None, limit=10)
    assert [conversation.session_id for conversation in one] == ["c", "a"]
    after = (one[0].created_at, one[0].id)
    rest = await services.transcript.conversations(DEFAULT_TENANT, user_id="u-1", after=after, limit=10)
    assert [conversation.title for conversation in rest] == ["in a"]


async def test_a_conversation_that_is_not_there_is_not_found(services: Services) -> None:
    with pytest.raises(NotFound):
        await services.transcript.messages(DEFAULT_TENANT, uuid7(), after=None, limit=10)
