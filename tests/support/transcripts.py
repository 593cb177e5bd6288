"""Conversations of any shape, written into the database in a state that could have arisen."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from uuid_utils.compat import uuid7

from services.platform.postgres import Database
from services.summaries.prompts import Place
from state.turn import OpenTurn

_INSERT = """
INSERT INTO messages (id, tenant_id, conversation_id, turn_id, role, content, completed, token_count, created_at)
VALUES (%(id)s, %(tenant_id)s, %(conversation_id)s, %(turn_id)s, %(role)s, %(content)s, %(completed)s,
    %(token_count)s, %(at)s)
"""

_ALL = """
SELECT id, created_at, topic_id FROM messages WHERE conversation_id = %s AND completed ORDER BY created_at, id
"""


async def say(
    database: Database,
    turn: OpenTurn,
    content: str,
    at: datetime,
    *,
    role: Literal["user", "assistant"] = "user",
    completed: bool = True,
    tokens: int = 10,
) -> UUID:
    """Store one message of the conversation of `turn`."""
    message_id = uuid7()
    values = {
        "id": message_id,
        "tenant_id": turn.tenant_id,
        "conversation_id": turn.conversation_id,
        "turn_id": turn.turn_id,
        "role": role,
        "content": content,
        "completed": completed,
        "token_count": tokens,
        "at": at,
    }
    async with database.tenant(turn.tenant_id) as connection:
        await connection.execute(_INSERT, values)
    return message_id


async def completed(database: Database, turn: OpenTurn) -> list[tuple[Place, UUID | None]]:
    """Place and topic of every completed message, in order."""
    async with database.tenant(turn.tenant_id) as connection:
        rows = await (await connection.execute(_ALL, [turn.conversation_id])).fetchall()
    return [((row[1], row[0]), row[2]) for row in rows]
