"""Import and export of users' data as JSON Lines, and import of another product's archive, with its progress."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import orjson
from fastapi import Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from api.access import MemoryWriter, ReadUser, UserOfPath, WrittenUser
from api.paging import json_router
from api.problems import NOT_FOUND, documented
from api.schemas import answered
from services.conversations.values import SpaceName
from services.errors import AnamnesisError, InvalidInput
from services.transfer.lines import MessageLine
from services.transfer.report import ImportReport
from services.transfer.vendors.conversion import Conversion, Vendor, VendorExport, in_chunks


def message_schema() -> dict[str, Any]:
    """Return the OpenAPI description of a line that is a message."""
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

router = json_router("/api/v1", "import and export")


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
async def import_lines(request: Request, caller: MemoryWriter) -> Any:
    """Store messages and the other lines of an export; valid lines are stored, invalid ones reported."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _ACCEPTED:
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Send JSON Lines as {LINES}.")
    return await caller.services.importer.run(caller.tenant_id, request.stream(), only_user=caller.user_id)


@router.get(
    "/users/{user_id}/export",
    response_class=Response,
    responses={
        200: {"description": "JSON Lines.", "content": {LINES: {"schema": {"type": "string"}}}},
        **NOT_FOUND,
    },
)
async def export(
    user: ReadUser,
    space: Annotated[
        SpaceName | None, Query(description="Only what belongs to this space; unset = everything.")
    ] = None,
) -> Response:
    """Everything stored for a user, or for one space, as lines that the import accepts."""
    exporter = user.services.exporter
    row = await exporter.user(*user.named, space)  # what can be refused is refused before the answer begins
    return StreamingResponse(_lines(exporter.lines(user.caller.tenant_id, row, space)), media_type=LINES)


async def _lines(parts: AsyncIterator[Sequence[str]]) -> AsyncIterator[str]:
    async for lines in parts:
        if lines:
            yield "".join(lines)


_MOST_ERRORS = 20
_TOLD_EVERY_S = 0.5


class ArchiveImportView(BaseModel):
    """A line of the answer: how far the import is, and in the last one what came of it."""

    read: int = Field(description="Bytes of its conversations and memories that were read.")
    size: int = Field(description="Bytes of them.")
    done: bool
    conversations: int = 0
    messages: int = 0
    memories: int = 0
    imported: int = Field(0, description="Lines that are stored now and were not before.")
    skipped: int = Field(0, description="Lines of what was stored already.")
    refused: int = Field(0, description="Records and lines with errors.")
    errors: list[str] = Field([], description=f"The first {_MOST_ERRORS} of these.")
    problem: str | None = Field(None, description="Why it broke off; what was read before is stored.")


@router.post(
    "/users/{user_id}/archive-imports",
    response_class=Response,
    responses={
        200: {
            "description": "JSON Lines, one each half second, each an `ArchiveImportView`.",
            "content": {"application/x-ndjson": {"schema": ArchiveImportView.model_json_schema()}},
        },
        **documented(HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "The ZIP archive, or a JSON file of it.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def import_archive(
    user: WrittenUser, vendor: Annotated[Vendor, Query(description="Whose export it is.")], request: Request
) -> Response:
    """Import an export of ChatGPT, Claude, Open WebUI, LibreChat or mem0 as the user's; sent again, it adds only
    what is new."""
    folder = TemporaryDirectory(prefix="anamnesis-import-")
    path = FilePath(folder.name) / "archive"
    try:
        with path.open("wb") as file:
            async for chunk in request.stream():
                await asyncio.to_thread(file.write, chunk)
        export = VendorExport(vendor, path, user=user.user_id)
        size = await asyncio.to_thread(export.archive.size)
    except InvalidInput as error:
        folder.cleanup()
        raise InvalidInput("archive", _told(error, path)) from None
    except BaseException:
        folder.cleanup()
        raise
    return StreamingResponse(_progress(user, export, size, folder), media_type="application/x-ndjson")


async def _progress(
    user: UserOfPath, export: VendorExport, size: int, folder: "TemporaryDirectory[str]"
) -> AsyncIterator[bytes]:
    read, found = 0, Conversion()

    def advance(count: int) -> None:
        nonlocal read
        read += count

    def line(**more: Any) -> bytes:
        counts = {"conversations": found.conversations, "messages": found.messages, "memories": found.memories}
        shown = ArchiveImportView(read=min(read, size), size=size, **counts, **more)
        return orjson.dumps(shown.model_dump()) + b"\n"

    chunks = in_chunks(export.lines(found, advance))
    running = asyncio.create_task(
        user.services.importer.run(user.caller.tenant_id, chunks, only_user=user.caller.user_id)
    )
    try:
        while not running.done():
            await asyncio.wait({running}, timeout=_TOLD_EVERY_S)
            if not running.done():
                yield line(done=False)
        report = await running
        errors = [*found.errors, *(f"{found.place_of(each.line)}: {each.reason}" for each in report.errors)]
        counts = {name: value for name, value in asdict(report).items() if name in {"imported", "skipped"}}
        yield line(done=True, **counts, refused=report.refused + found.unread, errors=errors[:_MOST_ERRORS])
    except AnamnesisError as error:
        yield line(done=True, problem=_told(error, FilePath(folder.name) / "archive"))
    finally:
        running.cancel()
        await asyncio.wait({running})
        await asyncio.to_thread(folder.cleanup)


def _told(error: AnamnesisError, path: FilePath) -> str:
    """Return what is wrong, without the path of the temporary file."""
    return error.message.replace(str(path), "the file")
