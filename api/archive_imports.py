"""Import of another product's archive, with its progress."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from api.access import MemoryWriter, ServicesOf
from api.problems import documented
from api.request_bodies import JsonRoute
from services.bootstrap import Services
from services.conversations.values import Id
from services.errors import AnamnesisError, InvalidInput
from services.identity.caller import Caller
from services.transfer.vendors.conversion import Conversion, Vendor, VendorExport, in_chunks

MOST_BYTES = 1024**3
"""Of an archive that is sent over HTTP; the command line reads larger ones."""
_MOST_ERRORS = 20
_TOLD_EVERY_S = 0.5

router = APIRouter(route_class=JsonRoute, prefix="/api/v1", tags=["import and export"])


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
        **documented(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE
        ),
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
    user_id: Annotated[Id, Path()],
    vendor: Annotated[Vendor, Query(description="Whose export it is.")],
    request: Request,
    services: ServicesOf,
    caller: MemoryWriter,
) -> Response:
    """Import an export of ChatGPT, Claude, Open WebUI, LibreChat or mem0 as the user's; sent again, it adds only
    what is new."""
    caller.act_for(user_id)
    folder = TemporaryDirectory(prefix="anamnesis-import-")
    path = FilePath(folder.name) / "archive"
    try:
        await _keep(request, path)
        export = VendorExport(vendor, path, user=user_id)
        size = await asyncio.to_thread(export.size)
    except ClientDisconnect:
        folder.cleanup()
        return Response(status_code=HTTPStatus.BAD_REQUEST)  # nobody reads it
    except InvalidInput as error:
        folder.cleanup()
        raise InvalidInput("archive", _told(error, path)) from None
    except BaseException:
        folder.cleanup()
        raise
    return StreamingResponse(_lines(services, caller, export, size, folder), media_type="application/x-ndjson")


async def _keep(request: Request, path: FilePath) -> None:
    size = 0
    with path.open("wb") as file:
        async for chunk in request.stream():
            size += len(chunk)
            if size > MOST_BYTES:
                raise HTTPException(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                    f"The archive is larger than {MOST_BYTES} bytes; import it with `anamnesis import`.",
                    headers={"Connection": "close"},
                )
            await asyncio.to_thread(file.write, chunk)


async def _lines(
    services: Services, caller: Caller, export: VendorExport, size: int, folder: "TemporaryDirectory[str]"
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
    running = asyncio.create_task(services.importer.run(caller.tenant_id, chunks, only_user=caller.user_id))
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
    """What is wrong, without where the service keeps the file meanwhile."""
    return error.message.replace(str(path), "the file")
