"""Converts the bytes of a document to text, in a process with limits."""

import asyncio
import contextlib
import math
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from services.json_levels import shallow_json
from services.knowledge.document import MOST_CHARACTERS, BadDocument, Converted, Part
from services.knowledge.encodings import Kind, decoded
from services.knowledge.screening import too_long
from services.platform.settings import Settings
from services.text.storable import storable

_KEPT_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
"""Environment variables that the other process inherits; none holds a secret."""


_MOST_BYTES = 5 * MOST_CHARACTERS
"""Maximum bytes of an answer: a process that its document took over could write without end."""
_PIECE_BYTES = 1024 * 1024
_OCR_SECONDS = 600
_MOST_OCR_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class ConversionLimits:
    at_once: int
    seconds: float
    """Time limit for one document, in seconds."""
    megabytes: int
    """Megabytes of memory for the process of one document."""
    ocr_command: str = ""
    """Command that recognises the text of a PDF of pictures, and writes it into the PDF; empty = none is used."""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Limits from the settings; by default one process for each two cores."""
        at_once = settings.knowledge_parsers or max(1, (os.cpu_count() or 1) // 2)
        return cls(
            at_once,
            settings.knowledge_parser_timeout_s,
            settings.knowledge_parser_memory_mb,
            settings.knowledge_ocr_command,
        )


class Converter:
    """Converts a few documents at a time; the others wait in order of arrival."""

    def __init__(self, limits: ConversionLimits) -> None:
        """Take the limits."""
        self._limits = limits
        self._places = asyncio.Semaphore(limits.at_once)

    async def convert(self, kind: Kind, data: bytes) -> Converted:
        """Convert a document to text; all but plain text and Markdown are parsed in a separate process. Raises
        `BadDocument` if it cannot be read; says why."""
        if kind in ("text", "markdown"):
            text = storable(await asyncio.to_thread(decoded, data))
            if len(text) > MOST_CHARACTERS:
                raise too_long()
            return Converted("", (Part(text),), headings=kind == "markdown")
        async with self._places:
            converted = await self._elsewhere(kind, data)
            if kind == "pdf" and converted.left_out and self._limits.ocr_command:
                converted = await self._recognised(data, converted)
        if not converted.parts:
            reasons = ", ".join(converted.left_out)
            raise BadDocument(f"holds no text{f'; it may be scanned ({reasons})' if kind == 'pdf' else ''}")
        return converted

    async def _recognised(self, data: bytes, before: Converted) -> Converted:
        """Return a PDF with the text of its pictures; if the command fails, as it was, with a note."""
        try:
            code, found = await _run(shlex.split(self._limits.ocr_command), data, _OCR_SECONDS, _MOST_OCR_BYTES)
            if code == 0:
                return await self._elsewhere("pdf", found)
            failure = f"the command for OCR ended with {code}"
        except (BadDocument, OSError) as error:
            failure = f"OCR failed: {error.message if isinstance(error, BadDocument) else error.strerror}"
        return replace(before, left_out=(*before.left_out, failure))

    async def _elsewhere(self, kind: Kind, data: bytes) -> Converted:
        command = [
            sys.executable,
            "-P",  # import nothing from the current folder
            "-m",
            "services.knowledge.conversion_process",
            kind,
            str(self._limits.megabytes),
            str(math.ceil(self._limits.seconds)),
        ]
        code, written = await _run(command, data, self._limits.seconds, _MOST_BYTES)
        if code != 0:
            raise BadDocument("cannot be read: what reads it broke down, or needed too much")
        answer = shallow_json(written)
        if "reason" in answer:
            raise BadDocument(answer["reason"])
        parts = tuple(Part(part["text"], part["page"]) for part in answer["parts"])
        return Converted(answer["title"], parts, answer["headings"], tuple(answer["left_out"]))


async def _run(command: Sequence[str], data: bytes, seconds: float, most_bytes: int) -> tuple[int, bytes]:
    """Give a program the document; return its exit code and what it writes. Raises `BadDocument` if it takes
    too long, or writes too much, and `OSError` if it cannot be started."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
        start_new_session=True,  # its child processes are ended with it
    )
    try:
        async with asyncio.timeout(seconds):
            written = await _answer(process, data, most_bytes)
    except TimeoutError:
        raise BadDocument(f"takes more than {seconds:g} seconds to be read") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return process.returncode or 0, written


async def _answer(process: asyncio.subprocess.Process, data: bytes, most_bytes: int) -> bytes:
    if process.stdin is None or process.stdout is None:
        raise AssertionError("both are pipes")
    given = asyncio.create_task(_give(process.stdin, data))
    written = bytearray()
    try:
        while piece := await process.stdout.read(_PIECE_BYTES):
            written += piece
            if len(written) > most_bytes:
                raise too_long()
    finally:
        given.cancel()
    await process.wait()
    return bytes(written)


async def _give(pipe: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):  # it has ended before it read everything
        pipe.write(data)
        await pipe.drain()
        pipe.close()
