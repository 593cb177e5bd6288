"""The store: JSON objects that programs keep of a user under namespaces and keys, as LangGraph's stores do."""

import json
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Request, Response
from pydantic import Field

from api.access import KnownCaller
from api.paging import json_router
from api.schemas import Answer, StrictModel
from api.streams import while_connected
from services.conversations.values import Id, SpaceName
from services.store import model

MOST_OPERATIONS = 1_000

_CLIENT_GONE = 499

router = json_router("/api/v1/store", "store", HTTPStatus.NOT_FOUND)

AnyOperation = Annotated[model.Operation, Field(discriminator="op")]


class BatchRequest(StrictModel):
    """Operations on the items of one user, or of one of their spaces."""

    user_id: Id
    space: SpaceName | None = Field(None, description="Null = items that belong to no space.")
    operations: list[AnyOperation] = Field(min_length=1, max_length=MOST_OPERATIONS)


class BatchResponse(Answer):
    """The result of each operation, in order."""

    results: list[model.Item | list[model.Item] | list[list[str]] | None]


@router.post("/batch", response_model=BatchResponse)
async def batch(body: BatchRequest, caller: KnownCaller, connection: Request) -> Any:
    """Read, write, search and list items in one round trip.

    Reads see what was there before the writes of the same batch; of several writes to a key the last one counts.
    Values come back as they were given. Every write is in the log of operations and can be undone there; what has
    a time to live is not kept for that. Reading needs the scope `memory:read`, writing `memory:write`.
    """
    writes = {isinstance(each, model.Put) for each in body.operations}
    for is_write in sorted(writes):
        caller.require("memory:write" if is_write else "memory:read")
    caller.act_for(body.user_id)
    owner = model.StoreOwner(caller.tenant_id, body.user_id, body.space)
    work = caller.services.store.batch(owner, body.operations)
    searches = any(isinstance(each, model.Search) for each in body.operations)
    # Nobody waits for what was sought once the client has gone; a write goes on.
    results = await (while_connected(connection, work) if searches and True not in writes else work)
    if results is None:
        return Response(status_code=_CLIENT_GONE)
    # By the standard library, which keeps every number as it is.
    content = json.dumps({"results": [_shown(each) for each in results]}, separators=(",", ":"), default=_moment)
    return Response(content, media_type="application/json")


def _shown(result: model.Result) -> Any:
    if isinstance(result, list):
        return [_shown(each) if isinstance(each, model.Item) else each for each in result]
    return vars(result) if isinstance(result, model.Item) else result


def _moment(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(type(value))
