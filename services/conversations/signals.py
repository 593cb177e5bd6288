"""Signals between processes about turns and users, over PostgreSQL's notifications.

They only reduce latency: queue positions and stop requests are in the table `turns`, which is checked every few
seconds anyway.
"""

import asyncio
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from uuid import UUID

import structlog

from services.conversations.turn import StopReason
from services.errors import DatabaseUnavailable
from services.platform.postgres import Database

log = structlog.get_logger(__name__)

_RECONNECT_S = 1.0


@dataclass(frozen=True)
class PlaceFree:
    """A turn of the conversation has ended while others wait; None = check all conversations."""

    conversation_id: UUID | None


@dataclass(frozen=True)
class StopAsked:
    """A turn must stop."""

    turn_id: UUID
    reason: StopReason


@dataclass(frozen=True)
class UserForgotten:
    """Something of a user was permanently removed: processes must drop what they hold of them in memory."""

    user_id: UUID


@dataclass(frozen=True)
class Approval:
    """The user has answered whether a call may be made."""

    turn_id: UUID
    approval_id: UUID
    approved: bool


@dataclass(frozen=True)
class AccountAgreed:
    """A browser has brought back what an authorization server said, to a process that does not wait for it."""

    parameters: str
    """The query of its address."""


Signal = AccountAgreed | Approval | PlaceFree | StopAsked | UserForgotten


async def turn_signals(database: Database) -> AsyncIterator[Signal]:
    """Yield notifications without end; after every gap in listening, one that any conversation may be free."""
    while True:
        try:
            async with aclosing(database.notifications("anamnesis_turns")) as notifications:
                async for text in notifications:
                    yield _read(text)
        except DatabaseUnavailable:
            log.debug("not listening for turns", reason="database unavailable")
        await asyncio.sleep(_RECONNECT_S)


def _read(text: str) -> Signal:
    match text.split(":"):
        case ["next", conversation_id]:
            return PlaceFree(UUID(conversation_id))
        case ["stop", turn_id, ("cancelled" | "partial" | "forgotten") as reason]:
            return StopAsked(UUID(turn_id), reason)
        case ["approval", turn_id, approval_id, ("yes" | "no") as answer]:
            return Approval(UUID(turn_id), UUID(approval_id), answer == "yes")
        case ["account", coded]:
            return AccountAgreed(urlsafe_b64decode(coded).decode())
        case ["forgotten", user_id]:
            return UserForgotten(UUID(user_id))
        case _:
            return PlaceFree(None)
