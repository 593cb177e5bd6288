"""From the bytes of a document to its text, whatever the document does."""

import asyncio
import contextlib
import json
import os
import sys

from services.knowledge.document import MOST_CHARACTERS, BadDocument, Converted, Part
from services.knowledge.encodings import decoded, storable
from services.knowledge.media_types import Kind

_AT_ONCE = 2
_MOST_S = 60.0
_KEPT_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
"""What the other process gets of our environment: none of the secrets."""


class Converter:
    """Converts documents, a few at once."""

    def __init__(self, *, most_seconds: float = _MOST_S) -> None:
        """Take the seconds that one document may take."""
        self._most_s = most_seconds
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def convert(self, kind: Kind, data: bytes) -> Converted:
        """The document as text; plain text and Markdown need no parser, the others get their own process.

        Raises:
            BadDocument: it cannot be read; says why.
        """
        if kind in ("text", "markdown"):
            text = storable(await asyncio.to_thread(decoded, data))
            if len(text) > MOST_CHARACTERS:
                raise BadDocument(f"holds more than {MOST_CHARACTERS:,} characters of text; split it")
            return Converted("", (Part(text),), headings=kind == "markdown")
        async with self._places:
            return await self._elsewhere(kind, data)

    async def _elsewhere(self, kind: Kind, data: bytes) -> Converted:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # nothing of the folder we happen to be in is imported
            "-m",
            "services.knowledge.conversion_process",
            kind,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
        )
        try:
            async with asyncio.timeout(self._most_s):
                written, _ = await process.communicate(data)
        except TimeoutError:
            raise BadDocument(f"takes more than {self._most_s:g} seconds to be read") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if process.returncode != 0:
            raise BadDocument("cannot be read: what reads it broke down, or needed too much")
        answer = json.loads(written)
        if "reason" in answer:
            raise BadDocument(answer["reason"])
        parts = tuple(Part(part["text"], part["page"]) for part in answer["parts"])
        return Converted(answer["title"], parts, answer["headings"])
