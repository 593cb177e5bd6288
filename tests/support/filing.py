"""What a scripted model answers the memory agent, and what the agent filed about whom."""

import json
from typing import Any

from services.bootstrap import Services
from services.conversations.turn import OpenTurn
from services.identity.tenants import DEFAULT_TENANT
from services.memory.blocks import Owner
from services.memory.episodes.episode import WrittenEpisode
from services.memory.operations import LoggedOperation
from tests.support.model_server import Reply

Operation = dict[str, Any]


def reply(*operations: Operation) -> Reply:
    """The small model answers these operations."""
    return Reply([json.dumps({"operations": list(operations)}, ensure_ascii=False)])


def core(**patch: Any) -> Operation:
    """A change of the section `human`."""
    return {"operation": "add", "memory": "core", "section": "human", "patch": patch}


def episode(content: str, kind: str = "decision", **more: Any) -> Operation:
    """A new episode."""
    return {"operation": "add", "memory": "episode", "type": kind, "content": content, **more}


def owner(turn: OpenTurn) -> Owner:
    """Whose memory a turn is about."""
    return Owner(turn.tenant_id, turn.user_id, turn.expert_id)


async def remember(services: Services, turn: OpenTurn) -> int:
    """Have the agent look at a turn; how many operations that took."""
    return await services.memory_agent.remember(turn.tenant_id, turn.turn_id)


async def human(services: Services, turn: OpenTurn) -> dict[str, Any]:
    """That section of core memory."""
    blocks = await services.memory.core.read(owner(turn))
    return next((block.content for block in blocks if block.section == "human"), {})


async def written(services: Services, turn: OpenTurn) -> list[WrittenEpisode]:
    """Memories that were written and hold, newest first."""
    return list(await services.memory.episodes.written(owner(turn), limit=50))


async def logged(services: Services) -> list[LoggedOperation]:
    """What memory did, oldest first."""
    return list(await services.memory.operations.list(DEFAULT_TENANT, "u-1", limit=100))[::-1]


async def count(services: Services, condition: str) -> int:
    """How many episodes there are of which that holds."""
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        row = await (await connection.execute(f"SELECT count(*) FROM episodes WHERE {condition}")).fetchone()
    assert row
    return int(row[0])
