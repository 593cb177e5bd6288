"""Promises that filing makes: those that their messages ask for, and that no tool and no plain form has made."""

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID, uuid5

import structlog

from services.errors import Conflict, InvalidInput
from services.memory.core.blocks import Owner
from services.memory.filing.promised import AskedPromise
from services.memory.filing.prompt import Said
from services.memory.operations import Trigger
from services.platform.connections import Connection
from services.promises.promises import NewPromise, Promises

# What a turn has made stays made where it was undone since; another turn may have made it for the same moment.
_MADE: LiteralString = """
SELECT (SELECT coalesce(array_agg(o.turn_id), '{}') FROM memory_operations o
        WHERE o.tenant_id = %(tenant_id)s AND o.user_id = %(user_id)s AND o.type = 'promise'
          AND o.turn_id = ANY(%(turn_ids)s)),
       (SELECT coalesce(array_agg(p.due_at), '{}') FROM promises p
        WHERE p.tenant_id = %(tenant_id)s AND p.user_id = %(user_id)s AND p.created_at >= %(since)s)
"""

log = structlog.get_logger(__name__)


class FiledPromises:
    """Makes what filing has found."""

    def __init__(self, promises: Promises) -> None:
        self._promises = promises

    async def make(
        self, connection: Connection, owner: Owner, found: Sequence[tuple[AskedPromise, Said]]
    ) -> list[UUID]:
        """Make them in a transaction of the caller's; return the operations that undo them. When each is due is
        read as of its message. What cannot be read, or is there already, is left out."""
        if not found:
            return []
        said = [each for _, each in found]
        values = {
            **vars(owner),
            "turn_ids": [each.turn_id for each in said],
            "since": min(each.created_at for each in said),
        }
        row = await (await connection.execute(_MADE, values)).fetchone()
        turns, moments = row or ((), ())
        made = list[UUID]()
        for asked, message in found:
            if message.turn_id in turns:
                continue
            new = NewPromise(
                text=asked.text,
                when=asked.when,
                timezone=message.timezone,
                conversation_id=message.conversation_id,
                message_id=message.id,
                quote=asked.quote,
                id=uuid5(message.id, f"{asked.when} {asked.text}"),
            )
            trigger = Trigger("filing", message.id, message.conversation_id, message.turn_id)
            try:
                occasion = await self._promises.occasion(owner, asked.when, message.created_at, message.timezone)
                operation_id = await self._promises.make_in(connection, owner, new, occasion, trigger, but=moments)
            except (InvalidInput, Conflict) as error:
                log.info("a promise was not made", reason=type(error).__name__)  # its words may be the user's
                continue
            made += [operation_id] if operation_id else []
        return made
