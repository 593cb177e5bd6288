"""The queue's connections: the service's pool, and for notifications a connection past a pooler."""

import asyncio
import contextlib
from collections.abc import Iterable
from contextlib import aclosing

import procrastinate
from procrastinate.connector import Notify

from services.errors import DatabaseUnavailable
from services.platform.postgres import Database

_RECONNECT_S = 1.0


class QueueConnector(procrastinate.PsycopgConnector):
    """The library's connector, which would listen at the pool's own address."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Pass on notifications without end; while they cannot be had, jobs are found by polling."""
        (channel,) = channels
        while True:
            with contextlib.suppress(DatabaseUnavailable):
                async with aclosing(self._database.notifications(channel)) as notifications:
                    async for payload in notifications:
                        if payload:  # the first one is empty: it listens
                            await on_notification(channel=channel, payload=payload)
            await asyncio.sleep(_RECONNECT_S)
