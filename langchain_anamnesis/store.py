"""A LangGraph store whose items are in Anamnesis: exact, searchable, logged, exported and erased with the user."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore, Op, Result, TTLConfig

from anamnesis_client import ServiceError
from langchain_anamnesis.clients import Clients, Named, running, told
from langchain_anamnesis.operations import Plan, Whose, WhoseOf


@dataclass(frozen=True)
class _Call:
    ops: Sequence[tuple[Op, WhoseOf]]
    results: asyncio.Future[list[Result]]


class AnamnesisStore(BaseStore):
    """A `BaseStore` over HTTP; a batch is one round trip for each user and space in it.

    Calls made at the same moment of an event loop form one batch, so thousands of calls at once need few round
    trips.
    """

    supports_ttl = True

    def __init__(
        self,
        url: str,
        *,
        user: Named,
        key: str | None = None,
        user_at: int | None = None,
        space: Named | None = None,
        space_at: int | None = None,
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        """Take the address of the service, and the owner of the items.

        Args:
            url: Address, such as `http://127.0.0.1:8000`.
            user: Owner of the items, unless the namespace names one; or a function from the runtime to the user.
            key: An API key or a token.
            user_at: Place of the label that names the user, from 0; a shorter namespace belongs to `user`. There
                is no search over all users: a prefix that names none is refused.
            space: Space of the user, or a function that tells it; None = items that belong to no space.
            space_at: Place of the label that names the space.
            fields: Paths that a search reads if a put names none; None = every text.
            ttl: `default_ttl` in minutes and `refresh_on_read`; the service itself removes expired items.
            timeout_s: Seconds to wait for the next bytes of an answer.
        """
        self._clients = Clients(url, "", key, timeout_s)
        self._user, self._user_at = user, user_at
        self._space, self._space_at = space, space_at
        self._fields = list(fields) if fields is not None else None
        self.ttl_config = ttl
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Call]] = WeakKeyDictionary()
        self._under_way: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clients.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._clients.aclose()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; reads see the items as they were before the writes.

        Raises:
            ServiceError: The service refused.
            Unreachable: The service does not answer.
        """
        plan = Plan.of(self._told(ops), self._fields)
        for (user, space), asked in plan.requests():
            operations = [each.operation for each in asked]
            plan.fill(asked, self._clients.sync.store(operations, user=user, space=space))
        return plan.results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does, in an event loop, together with other calls of this moment and in their order."""
        loop = asyncio.get_running_loop()
        call = _Call(self._told(ops), loop.create_future())
        waiting = self._waiting.setdefault(loop, [])
        waiting.append(call)
        if len(waiting) == 1:
            loop.call_soon(self._send_waiting, loop)
        return await call.results

    def _send_waiting(self, loop: asyncio.AbstractEventLoop) -> None:
        calls = self._waiting.pop(loop)
        task = loop.create_task(self._answer(calls))

        def give_up(_: object) -> None:
            if all(each.results.cancelled() for each in calls):
                task.cancel()

        for each in calls:
            each.results.add_done_callback(give_up)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _answer(self, calls: Sequence["_Call"]) -> None:
        """Answer calls; one by one if the service refuses one of them."""
        try:
            plan = Plan.of([op for call in calls for op in call.ops], self._fields)
            for (user, space), asked in plan.requests():
                operations = [each.operation for each in asked]
                plan.fill(asked, await self._clients.of_loop.store(operations, user=user, space=space))
        except Exception as error:  # each caller gets it
            refused = isinstance(error, ServiceError) and error.status < HTTPStatus.INTERNAL_SERVER_ERROR
            if len(calls) > 1 and (refused or isinstance(error, ValueError)):
                for call in calls:
                    await self._answer([call])
                return
            for call in calls:
                if not call.results.done():
                    call.results.set_exception(error)
            return
        results = iter(plan.results)
        for call in calls:
            of_call = [next(results) for _ in call.ops]
            if not call.results.done():
                call.results.set_result(of_call)

    def _told(self, ops: Iterable[Op]) -> list[tuple[Op, WhoseOf]]:
        """Return operations with the functions that tell their owners by the current runtime."""
        runtime = running()
        user = told(self._user, runtime)
        space = told(self._space, runtime) if self._space is not None else None

        def whose(namespace: Sequence[str], within: bool) -> Whose:
            def label(at: int | None, usual: Any) -> Any:
                return namespace[at] if at is not None and at < len(namespace) and namespace[at] != "*" else usual

            if within and self._user_at is not None and label(self._user_at, None) is None:
                place = f"the label {self._user_at} of the namespace (user_at={self._user_at})"
                raise ValueError(
                    f"{tuple(namespace)} names no user, who is {place}: a search is of one user's items"
                )
            return label(self._user_at, user), label(self._space_at, space)

        return [(op, whose) for op in ops]
