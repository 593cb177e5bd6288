"""Reasons given with a thumb down become wishes about answers: the user is asked once, and a wish that is repeated
is kept."""

from typing import Any, LiteralString
from uuid import UUID

import structlog
from psycopg.rows import class_row, tuple_row

from services.errors import Conflict, InvalidInput, NotFound
from services.memory.core.blocks import Owner
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from services.memory.planning.planner import LONGEST_ITEM
from services.memory.proposals.questions import OF_OWNER, OPEN, OpenQuestion
from services.memory.proposals.settling import Proposals
from services.platform.postgres import Database
from services.text.language import Language, folded, language_of

_TURN: LiteralString = """
SELECT c.user_id, c.expert_id, c.space_id, c.id, t.user_message_id, u.external_id
FROM turns t JOIN conversations c ON c.id = t.conversation_id JOIN experts x ON x.id = c.expert_id
JOIN users u ON u.id = c.user_id
WHERE t.id = %(turn_id)s AND t.tenant_id = %(tenant_id)s AND NOT 'core_memory' = ANY(x.parts_off)
  AND u.memory IS NOT FALSE
  AND EXISTS (SELECT FROM remembered_messages m WHERE m.id = t.user_message_id)
"""
_EARLIER: LiteralString = f"{OPEN} {OF_OWNER} AND o.results->>'by' = 'feedback' ORDER BY o.at DESC LIMIT 50"
_WISH: dict[Language, str] = {"en": "about answers: “{text}”", "zh": "对回答的要求：“{text}”"}

log = structlog.get_logger(__name__)


class FeedbackWishes:
    """Stores the reasons given with a thumb down as wishes that wait for the user's yes."""

    def __init__(self, database: Database, proposals: Proposals) -> None:
        self._database = database
        self._proposals = proposals

    async def hear(self, tenant_id: UUID, turn_id: UUID, reason: str) -> None:
        """Store a reason as a wish that waits for the user's yes, or keep it if it waits since another turn.

        A wish that the user rejected is not asked about again, and a reason of more than 300 characters is not a
        wish. The wish applies to the turn's expert and space.
        """
        text = " ".join(reason.split())
        if not text or len(text) > LONGEST_ITEM:
            return
        values: dict[str, Any] = {"tenant_id": tenant_id, "turn_id": turn_id}
        rows = await self._database.fetch(tenant_id, _TURN, values, tuple_row)
        if not rows:
            return
        user_id, expert_id, space_id, conversation_id, message_id, user = rows[0]
        wish = _WISH[language_of([text])].format(text=text)
        owner = Owner(tenant_id, user_id, expert_id, space_id)
        asked = await self._database.fetch(tenant_id, _EARLIER, vars(owner), class_row(OpenQuestion))
        same = [
            each for each in asked if folded(each.text) == folded(wish) and each.state not in {"expired", "undone"}
        ]
        if same and same[0].state == "waiting" and same[0].turn_id != turn_id:
            try:
                await self._proposals.settle(tenant_id, user, same[0].id, accept=True)
            except (
                Conflict,
                InvalidInput,
                NotFound,
            ) as error:  # the thumb is stored, and the wish goes on waiting
                log.warning("a wish is not kept", proposal_id=str(same[0].id), reason=str(error))
        elif not same:
            trigger = Trigger("user", message_id, conversation_id, turn_id)
            request = ChangeRequest(owner, conversation_id, message_id, trigger)
            async with self._database.tenant(tenant_id) as connection:
                await self._proposals.add_in(connection, request, "remember", wish, by="feedback")
