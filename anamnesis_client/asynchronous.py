"""The client for programs with an event loop; `synchronous.py` is the same without."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import httpx

from anamnesis_client import calls
from anamnesis_client.calls import Call, MemoryKind, Result
from anamnesis_client.errors import ClientError, ServiceError, Unreachable
from anamnesis_client.models import Answer, Event, FoundMemory, ImportReport, MemoryChange, Section, WrittenMemory
from anamnesis_client.streams import Lines, Parts, Tries, TurnStream

Params = Mapping[str, Any] | None


class AsyncAnamnesis:
    """A client of one service, for one user unless a call names another."""

    def __init__(
        self,
        url: str,
        *,
        user: str,
        key: str | None = None,
        timeout_s: float = 120.0,
        retries: int = 5,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        """Take the address of the service, and the user.

        Args:
            url: Address, such as `http://127.0.0.1:8000`.
            user: Your program's name for the user.
            key: An API key or a token.
            timeout_s: Seconds to wait for the next bytes of an answer.
            retries: Number of tries after consecutive failures, if nothing can happen twice.
            http: A client of your own, with its address and headers; it stays open.
        """
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._owns = http is None
        self._http = http or httpx.AsyncClient(
            base_url=url, headers=headers, timeout=timeout_s, trust_env=not calls.is_loopback(url)
        )
        self._user = user
        self._retries = retries

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._owns:
            await self._http.aclose()

    async def chat(
        self,
        message: str,
        *,
        session: str = "default",
        user: str | None = None,
        key: str | None = None,
        **options: Any,
    ) -> Answer:
        """Send a message and wait for the whole answer.

        Args:
            message: Words of the user.
            session: Your program's name for the conversation.
            user: Another user than the client's.
            key: Idempotency key: the same key in the same conversation means the same turn.
            options: Other fields of the API, such as `expert`, `timezone`, `images` or `kb_prefix`.

        Raises:
            ServiceError: The service refused, or the turn failed.
            Unreachable: The service does not answer.
        """
        body = calls.chat_body(message, user or self._user, session, options)
        return await self._send(calls.chat(body, key))

    async def stream(
        self,
        message: str,
        *,
        session: str = "default",
        user: str | None = None,
        key: str | None = None,
        **options: Any,
    ) -> AsyncIterator[Event]:
        """Send a message and yield the events of its turn; the last one is `done`.

        If the connection breaks, a new one continues where it broke; no event is lost or repeated. Arguments are
        those of `chat`.

        Raises:
            TurnFailed: The turn ended with an error.
            ServiceError: The service refused.
            Unreachable: The connection broke, and no new one could continue.
        """
        body = calls.chat_body(message, user or self._user, session, options)
        stream = TurnStream(body, key or str(uuid4()))
        async for event in self._events(stream):
            yield event

    async def resume(self, turn_id: str, *, after: int = 0) -> AsyncIterator[Event]:
        """Yield the events of a known turn from the one after `after` on; errors are those of `stream`."""
        async for event in self._events(TurnStream(None, turn_id=turn_id, last=after)):
            yield event

    async def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        user: str | None = None,
        as_of: datetime | None = None,
        **options: Any,
    ) -> list[FoundMemory]:
        """Search all that was said or written down, best first; with `as_of`, what was known at that time.

        `options` are other fields of the API, such as `expert` and `space`.
        """
        return await self._send(calls.recall(user or self._user, query, limit, as_of, options))

    async def remember(
        self, text: str, *, kind: MemoryKind = "preference", user: str | None = None
    ) -> WrittenMemory:
        """Write a memory; the user must have said something before."""
        return await self._send(calls.remember(user or self._user, text, kind))

    async def forget(
        self, what: str, *, keep: str = "", all: bool = False, user: str | None = None
    ) -> MemoryChange:
        """Forget what a text describes, wherever it is remembered.

        Nothing is changed if a sentence says it together with something else: `also_said` of the result has such
        sentences. In a second call, `keep` is the text that is to stay, or `all` removes the whole sentences. If
        several memories may be meant (`candidates`), nothing is changed; `all` removes those with the words.
        """
        return await self._send(calls.forget(user or self._user, what, keep, takes_all=all))

    async def undo(self, operation_id: str, *, user: str | None = None) -> None:
        """Undo a change of memory."""
        await self._send(calls.undo(user or self._user, operation_id))

    async def approve(self, turn_id: str, approval_id: str, *, approved: bool) -> None:
        """Answer whether a tool may be called, after an event `approval` of a stream with `approvals=True`."""
        await self._send(calls.approve(turn_id, approval_id, approved=approved))

    async def pin(self, memory_id: str, *, user: str | None = None) -> None:
        """Pin a memory, so that maintenance leaves it alone."""
        await self._send(calls.pin(user or self._user, memory_id, pinned=True))

    async def unpin(self, memory_id: str, *, user: str | None = None) -> None:
        """Unpin a memory."""
        await self._send(calls.pin(user or self._user, memory_id, pinned=False))

    async def profile(self, *, user: str | None = None, as_of: datetime | None = None) -> list[Section]:
        """Return core memory by section; with `as_of`, which needs a time zone, as it was then."""
        return await self._send(calls.profile(user or self._user, as_of))

    async def store(
        self, operations: Sequence[Mapping[str, Any]], *, user: str | None = None, space: str | None = None
    ) -> list[Any]:
        """Read, write, search and list items of the store in one round trip; return the result of each operation.

        Args:
            operations: Operations of the API, such as `{"op": "get", "namespace": ["notes"], "key": "a"}`.
            user: Another user than the client's.
            space: Space of the user; None = items that belong to no space.
        """
        return await self._send(calls.store(user or self._user, operations, space))

    async def request(self, method: str, *path: object, json: Any = None, params: Params = None) -> Any:
        """Send any request of the API, and return the content of the answer; None = it has none.

        Args:
            method: Method of HTTP.
            path: Segments of the path below `/api/v1`, such as `"users", "me", "spaces"`.
            json: The body.
            params: The query; values that are None are left out.
        """
        return await self._send(calls.endpoint(method, path, json, params))

    async def items(
        self, *path: object, params: Params = None, limit: int | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the items of a list of the API, from as many pages as needed, and at most `limit` of them."""
        after, left = None, limit
        while left is None or left > 0:
            size = calls.PAGE if left is None else min(left, calls.PAGE)
            query = {**(params or {}), "limit": size, "after": after}
            page = await self.request("GET", *path, params=query)
            for item in page["items"]:
                yield item
            left = None if left is None else left - len(page["items"])
            after = page.get("next")
            if after is None:
                return

    async def add_document(self, base: str, source: str, data: bytes) -> Mapping[str, Any]:
        """Take a document into a knowledge base, replacing one of the same name; the name's ending says its kind.

        Returns:
            `status` (`created`, `replaced` or `unchanged`) and `document`.
        """
        return await self._send(calls.document(base, source, data))

    async def export(self, *, user: str | None = None, space: str | None = None) -> AsyncIterator[str]:
        """Yield everything that is stored of a user, or in one space, as JSON Lines that `import_lines`
        accepts."""
        lines = Lines()
        async with self._answer(calls.export(user or self._user, space)) as response:
            async for data in response.aiter_bytes():
                for line in lines.take(data):
                    yield line

    async def import_lines(
        self, lines: AsyncIterable[str | bytes], *, part_bytes: int = calls.IMPORT_BYTES
    ) -> ImportReport:
        """Import JSON Lines. Known lines are skipped, so a broken import can simply be repeated.

        Args:
            lines: Texts, each a line, or bytes that may be cut anywhere.
            part_bytes: Minimum bytes after which a request ends; a longer import takes several requests.
        """
        parts, report, pieces, more = Parts(part_bytes), ImportReport(0, 0, 0), aiter(lines), True

        async def content() -> AsyncIterator[bytes]:
            nonlocal more
            if rest := parts.begin():
                yield rest
            async for piece in pieces:
                yield parts.take(piece)
                if parts.full:
                    return
            more = False

        while more:
            before = parts.lines
            async with self._answer(calls.import_part(content())) as response:
                await response.aread()
            report = report.followed_by(ImportReport.of(calls.content_of(response)), before=before)
        return report

    async def _events(self, stream: TurnStream) -> AsyncIterator[Event]:
        tries = Tries(self._retries)
        while not stream.ended:
            failure: ClientError = Unreachable("The stream ended early.")
            try:
                async with self._answer(stream.request()) as response:
                    lines = Lines()
                    async for data in response.aiter_bytes():
                        for line in lines.take(data):
                            if event := stream.take(line):
                                tries.succeeded()
                                yield event
            except (ServiceError, Unreachable) as error:
                failure = error
            if not stream.ended:
                await _pause(tries, failure)

    async def _send(self, call: Call[Result]) -> Result:
        tries = Tries(self._retries)
        while True:
            try:
                async with self._answer(call) as response:
                    await response.aread()
                    return call.read(calls.content_of(response))
            except (ServiceError, Unreachable) as error:
                if not call.may_follow(error):
                    raise
                await _pause(tries, error)

    @asynccontextmanager
    async def _answer(self, call: Call[Any]) -> AsyncIterator[httpx.Response]:
        """Send a request, and yield its successful answer, of which nothing has been read."""
        try:
            async with self._http.stream(
                call.method,
                call.path,
                json=call.json,
                content=call.content,
                params=dict(call.params),
                headers=dict(call.headers),
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise calls.error_of(response)
                yield response
        except httpx.TransportError as error:
            unreachable = Unreachable(f"{call.path}: {str(error) or type(error).__name__}")
            unreachable.timed_out = isinstance(error, httpx.ReadTimeout)
            raise unreachable from error


async def _pause(tries: Tries, failure: ClientError) -> None:
    """Wait before the next try, or raise the failure if trying again cannot help."""
    pause_s = tries.pause_s(failure)
    if pause_s is None:
        raise failure
    await asyncio.sleep(pause_s)
