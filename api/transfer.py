"""Import and export of users' data as JSON Lines."""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from api.access import MemoryReader, MemoryWriter, ServicesOf
from api.problems import documented
from api.request_bodies import JsonRoute
from api.schemas import answered
from services.bootstrap import Services
from services.conversations.values import Id, SpaceName
from services.identity.caller import Caller
from services.transfer.export_store import ExportedUser
from services.transfer.lines import MessageLine
from services.transfer.report import ImportReport


def message_schema() -> dict[str, Any]:
    """The OpenAPI document on a line that is a message."""
    schema = MessageLine.model_json_schema()
    defined = schema.pop("$defs")
    feedback = {"anyOf": [defined["FeedbackPart"], {"type": "null"}], "default": None}
    images = {"type": "array", "items": {"type": "object"}, "description": "Images as OpenAI content parts."}
    schema["properties"] |= {"parts": images, "feedback": feedback}
    return schema


LINES = "application/x-ndjson"
_ACCEPTED = frozenset(
    {LINES, "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/json"}
)

log = structlog.get_logger(__name__)

router = APIRouter(
    route_class=JsonRoute,
    prefix="/api/v1",
    tags=["import and export"],
    responses=documented(HTTPStatus.SERVICE_UNAVAILABLE),
)


@router.post(
    "/import",
    response_model=answered(ImportReport),
    responses=documented(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "JSON Lines, read as they come.",
            "content": {
                **{kind: {"schema": {"type": "string"}} for kind in (LINES, "application/jsonl")},
                "application/json": {"schema": message_schema()},
            },
        }
    },
)
async def import_lines(request: Request, services: ServicesOf, caller: MemoryWriter) -> Any:
    """Store messages and the other lines of an export; valid lines are stored, invalid ones reported."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _ACCEPTED:
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Send JSON Lines as {LINES}.")
    try:
        return await services.importer.run(caller.tenant_id, request.stream(), only_user=caller.user_id)
    except ClientDisconnect:
        log.info("import broken off by its client", tenant_id=str(caller.tenant_id))
        return Response(status_code=HTTPStatus.BAD_REQUEST)  # nobody reads it


@router.get(
    "/users/{user_id}/export",
    response_class=Response,
    responses={
        200: {"description": "JSON Lines.", "content": {LINES: {"schema": {"type": "string"}}}},
        **documented(HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY),
    },
)
async def export(
    user_id: Annotated[Id, Path()],
    services: ServicesOf,
    caller: MemoryReader,
    space: Annotated[
        SpaceName | None, Query(description="Only what belongs to this space; unset = everything.")
    ] = None,
) -> Response:
    """Everything stored for a user, or for one space, as lines that the import accepts."""
    caller.act_for(user_id)
    user = await services.exporter.user(caller.tenant_id, user_id)
    if space is not None:
        await services.exporter.check_space(caller.tenant_id, user, space)
    return StreamingResponse(_lines(services, caller, user, space), media_type=LINES)


async def _lines(services: Services, caller: Caller, user: ExportedUser, space: str | None) -> AsyncIterator[str]:
    async for lines in services.exporter.lines(caller.tenant_id, user, space):
        if lines:
            yield "".join(lines)
