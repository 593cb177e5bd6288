"""What a scripted model files, and the resulting memory."""

import json
from collections.abc import Sequence
from typing import Any

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.memory.core.blocks import Owner
from services.memory.filing.evidence import FilingEvidence
from services.memory.filing.filing import Filing
from services.memory.filing.store import FilingStore
from services.memory.operations import LoggedOperation
from services.memory.proposals.listing import Proposal
from services.promises.filed import FiledPromises
from state.turn import OpenTurn
from tests.support.model_server import ModelServer, Received, Reply

Operation = dict[str, Any]


def filed(
    *operations: Operation, story: Any = False, mood: Any = None, complaint: str = "", promises: Any = None
) -> Reply:
    """Return a reply with which the small model answers these operations."""
    answer = {
        "operations": list(operations),
        "story": story,
        "mood": mood,
        "complaint": complaint,
        "promises": promises,
    }
    return Reply([json.dumps(answer, ensure_ascii=False)])


def add(text: str, quote: str, field: str = "", **more: Any) -> Operation:
    return {"op": "add", "text": text, "quote": quote, **({"field": field} if field else {}), **more}


def replace(memory: str, text: str, quote: str) -> Operation:
    return {"op": "replace", "id": memory, "text": text, "quote": quote}


def remove(memory: str, quote: str) -> Operation:
    return {"op": "remove", "id": memory, "quote": quote}


def owner(turn: OpenTurn) -> Owner:
    return Owner(turn.tenant_id, turn.user_id, turn.expert_id, turn.space_id)


async def file(services: Services, turn: OpenTurn) -> int:
    """File what the user of a turn said; return the number of changes."""
    return await services.filing.file(turn.tenant_id, turn.user_id)


def asked(model_server: ModelServer) -> list[Received]:
    """The requests to the small model."""
    return [request for request in model_server.requests if request.body["model"] == "small"]


async def human(services: Services, turn: OpenTurn) -> dict[str, Any]:
    """Return the section `human` of core memory."""
    blocks = await services.memory.core.read(owner(turn))
    return next((block.content for block in blocks if block.section == "human"), {})


async def written(services: Services, user: str = "u-1") -> list[str]:
    """Return the written memories that hold, newest first."""
    known = await services.memory.known.list(DEFAULT_TENANT, user, limit=50)
    return [each.text for each in known if each.kind == "written"]


async def waiting(services: Services, user: str = "u-1") -> Sequence[Proposal]:
    """Return the changes that wait for a user, newest first."""
    return await services.memory.proposals.list(DEFAULT_TENANT, user, limit=50)


async def logged(services: Services, user: str = "u-1") -> list[LoggedOperation]:
    """Return the log of memory operations, oldest first."""
    return list(await services.memory.operations.list(DEFAULT_TENANT, user, limit=100))[::-1]


def filing_for(services: Services, jobs: JobQueue, *, quiet_s: float = 0.0, pause_s: float = 0.0) -> Filing:
    memory = services.memory
    store = FilingStore(services.database, memory.operations)
    return Filing(
        store,
        FilingEvidence(memory.changes.finder, memory.values, memory.foreign_origins),
        services.models,
        memory.changes.planner,
        memory.hiding,
        memory.proposals,
        jobs,
        FiledPromises(services.promises).make,
        services.feedback.complain,
        quiet_s=quiet_s,
        pause_s=pause_s,
    )
