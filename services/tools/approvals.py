"""Tool calls that change something wait here until the user has said yes or no."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

from langchain_core.messages import ToolCall
from psycopg.rows import tuple_row
from uuid_utils.compat import uuid7

from services.platform.postgres import Database

# Any process may take the answer: the one that runs the turn hears of it.
_TELL = """
SELECT pg_notify('anamnesis_turns', 'approval:' || %(turn_id)s::text || ':'
    || %(approval_id)s::text || ':' || %(answer)s)
"""


class Approvals:
    """Questions that wait in turns of this process."""

    def __init__(self, database: Database, *, patience_s: float) -> None:
        """Take the seconds for which a call waits; after them it is not made."""
        self._database = database
        self._patience_s = patience_s
        self._asked: dict[tuple[UUID, UUID], asyncio.Future[bool]] = {}

    async def ask(
        self, turn_id: UUID, call: ToolCall, on_event: Callable[[str, dict[str, Any]], None]
    ) -> bool | None:
        """Ask the user about a call, in the turn's stream; return the answer, None = there was none in time."""
        approval_id = uuid7()
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._asked[turn_id, approval_id] = answer
        asked = {
            "approval_id": str(approval_id),
            "id": call["id"],
            "name": call["name"],
            "arguments": call["args"],
        }
        on_event("approval", {**asked, "within_s": self._patience_s})
        try:
            async with asyncio.timeout(self._patience_s):
                return await answer
        except TimeoutError:
            return None
        finally:
            del self._asked[turn_id, approval_id]

    async def answer(self, tenant_id: UUID, turn_id: UUID, approval_id: UUID, *, approved: bool) -> None:
        """Take the user's answer, also for a turn that runs in another process; the first answer counts. Raises
        `DatabaseUnavailable` if the database does not answer, and the turn does not run in this process."""
        if not self.settle(turn_id, approval_id, approved=approved):
            values = {"turn_id": turn_id, "approval_id": approval_id, "answer": "yes" if approved else "no"}
            await self._database.fetch(tenant_id, _TELL, values, tuple_row)

    def settle(self, turn_id: UUID, approval_id: UUID, *, approved: bool) -> bool:
        """Give an answer to the call that waits for it; returns False if no call waits here."""
        answer = self._asked.get((turn_id, approval_id))
        if answer is None:
            return False
        if not answer.done():
            answer.set_result(approved)
        return True
