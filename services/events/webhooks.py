"""Webhooks: addresses of a tenant's that are told of events, signed by the convention of standardwebhooks.com.

A delivery is queued in the transaction of its event (`note_event` of the migrations), so that none is lost; it may
arrive twice, with the same id. Until an address answers with 2xx it is asked again, for some two hours.
"""

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, LiteralString
from uuid import UUID

import httpx2
import orjson
import structlog
from psycopg.rows import class_row, dict_row, tuple_row
from uuid_utils.compat import uuid7

from services.encryption.marks import Words
from services.errors import Conflict, InvalidInput, NotFound, Unavailable
from services.events.feed import EventKind
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.platform.guarded_http import GuardedTransport
from services.platform.postgres import Database
from services.platform.shared_reads import page_after

DELIVER = "deliver_webhook"
MOST_WEBHOOKS = 20
_WAITS_S = (5.0, 30.0, 120.0, *(600.0,) * 11)
"""Seconds before each further try."""
_WITHIN_S = 10.0
_SECRET_BYTES = 32
_PREFIX = "whsec_"
_KEY_OF = "\0webhooks"
"""Under whose key secrets are sealed: a name that no user can have."""
_TEST = "webhook.test"

_COLUMNS: LiteralString = "id, url, kinds, created_at"
_ADD: LiteralString = f"""
INSERT INTO webhooks (id, tenant_id, url, secret, kinds)
SELECT %(id)s, %(tenant_id)s, %(url)s, %(secret)s, %(kinds)s
WHERE (SELECT count(*) FROM webhooks WHERE tenant_id = %(tenant_id)s) < %(most)s
RETURNING {_COLUMNS}
"""  # noqa: S608 — our own text only
_LIST: LiteralString = f"""
SELECT {_COLUMNS} FROM webhooks WHERE tenant_id = %(tenant_id)s ORDER BY created_at, id
"""  # noqa: S608 — our own text only
_REMOVE: LiteralString = "DELETE FROM webhooks WHERE id = %(id)s AND tenant_id = %(tenant_id)s RETURNING id"
_GET: LiteralString = "SELECT url, secret FROM webhooks WHERE id = %(id)s AND tenant_id = %(tenant_id)s"
_DELIVERIES: LiteralString = """
SELECT d.id, d.event_id, e.kind, e.about, d.state, d.tries, d.status, d.error, d.created_at, d.settled_at
FROM webhook_deliveries d JOIN user_events e ON e.id = d.event_id
WHERE d.webhook_id = %(id)s AND d.tenant_id = %(tenant_id)s
  AND (%(after_at)s::timestamptz IS NULL OR (d.created_at, d.id) < (%(after_at)s, %(after_id)s::uuid))
ORDER BY d.created_at DESC, d.id DESC LIMIT %(limit)s
"""
_AGAIN: LiteralString = """
UPDATE webhook_deliveries SET state = 'waiting', tries = 0, settled_at = NULL
WHERE id = %(delivery_id)s AND webhook_id = %(id)s AND tenant_id = %(tenant_id)s AND state <> 'waiting'
"""
_TO_SEND: LiteralString = """
SELECT d.tries, w.url, w.secret, e.id AS event_id, e.kind, e.about, e.at, u.external_id AS user_id,
       m.content AS text
FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id JOIN user_events e ON e.id = d.event_id
JOIN users u ON u.id = e.user_id
LEFT JOIN messages m ON m.id = (e.about->>'message_id')::uuid
WHERE d.id = %(delivery_id)s AND d.tenant_id = %(tenant_id)s AND d.state = 'waiting'
"""
_TRIED: LiteralString = """
UPDATE webhook_deliveries SET tries = tries + 1, status = %(status)s, error = %(error)s, state = %(state)s,
    settled_at = CASE WHEN %(state)s <> 'waiting' THEN clock_timestamp() END
WHERE id = %(delivery_id)s AND tenant_id = %(tenant_id)s
"""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Webhook:
    """An address that is told of events."""

    id: UUID
    url: str
    kinds: list[EventKind]
    """Kinds of events that it is told; empty = all."""
    created_at: datetime


@dataclass(frozen=True)
class NewWebhook(Webhook):
    """A webhook with its secret, which is told once."""

    secret: str
    """The key of its signatures, as libraries of Standard Webhooks take it."""


@dataclass(frozen=True)
class Tried:
    """Answer of an address to a test message."""

    status: int | None
    """HTTP status; null = it did not answer."""
    error: str | None
    """Why it counts as failed; null = it was delivered."""


@dataclass(frozen=True)
class Delivery:
    """A message to a webhook, sent or to be sent."""

    id: UUID
    """The header `webhook-id`, the same in every try."""
    event_id: int
    kind: EventKind
    about: dict[str, Any]
    state: Literal["waiting", "delivered", "failed"]
    tries: int
    status: int | None
    """HTTP status of the last answer."""
    error: str | None
    created_at: datetime
    settled_at: datetime | None


class Webhooks:
    """Keeps a tenant's webhooks, and tells them. Every process with a worker has one: it registers the job."""

    def __init__(self, database: Database, jobs: JobQueue, *, private_origins: Sequence[str] = ()) -> None:
        """Take the origins within the operator's network that may be told."""
        self._database = database
        self._jobs = jobs
        self._trusted = frozenset(private_origins)
        self._transport = GuardedTransport(private_origins)
        self._http = httpx2.AsyncClient(transport=self._transport, timeout=_WITHIN_S, follow_redirects=False)
        jobs.task(DELIVER)(self._deliver)

    async def add(self, tenant_id: UUID, url: str, kinds: Sequence[EventKind]) -> NewWebhook:
        """Add a webhook. Raises `InvalidInput` if the address is none of the web, is not https, or leads into
        the operator's network, and `Conflict` if there are too many."""
        try:
            address = httpx2.URL(url)
            await self._transport.check(address)
        except (httpx2.InvalidURL, ValueError, Unavailable) as error:
            raise InvalidInput("url", str(error) or "is no address") from error
        if address.scheme != "https" and f"{address.scheme}://{address.netloc.decode()}" not in self._trusted:
            raise InvalidInput("url", "needs https, or an origin of ANAMNESIS_WEBHOOK_ORIGINS")
        secret = _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
        values = {
            **{"id": uuid7(), "tenant_id": tenant_id, "most": MOST_WEBHOOKS},
            **{"url": url, "secret": Words(secret), "kinds": list(dict.fromkeys(kinds)), "user": _KEY_OF},
        }
        made = await self._database.fetch(tenant_id, _ADD, values, class_row(Webhook))
        if not made:
            raise Conflict(f"There are {MOST_WEBHOOKS} webhooks already.")
        return NewWebhook(**vars(made[0]), secret=secret)

    async def list(self, tenant_id: UUID) -> Sequence[Webhook]:
        """Webhooks of a tenant, the oldest first."""
        return await self._database.fetch(tenant_id, _LIST, {"tenant_id": tenant_id}, class_row(Webhook))

    async def remove(self, tenant_id: UUID, webhook_id: UUID) -> None:
        """Remove a webhook with what it was to be told. Raises `NotFound` if the tenant has none of this id."""
        values = {"id": webhook_id, "tenant_id": tenant_id}
        if not await self._database.fetch(tenant_id, _REMOVE, values, tuple_row):
            raise NotFound(f"There is no webhook {webhook_id}.")

    async def try_out(self, tenant_id: UUID, webhook_id: UUID) -> Tried:
        """Send a webhook a message of the type `webhook.test` at once. Raises `NotFound` if the tenant has none
        of this id."""
        values = {"id": webhook_id, "tenant_id": tenant_id}
        rows = await self._database.fetch(tenant_id, _GET, values, dict_row)
        if not rows:
            raise NotFound(f"There is no webhook {webhook_id}.")
        body = {"type": _TEST, "timestamp": datetime.now(UTC), "data": {}}
        return Tried(*await self._send(rows[0], uuid7(), body))

    async def deliveries(
        self, tenant_id: UUID, webhook_id: UUID, *, after: tuple[datetime, UUID] | None, limit: int
    ) -> Sequence[Delivery]:
        """Return the deliveries of the last week, the newest first."""
        values = {"id": webhook_id, "tenant_id": tenant_id, **page_after(after, limit)}
        return await self._database.fetch(tenant_id, _DELIVERIES, values, class_row(Delivery))

    async def repeat(self, tenant_id: UUID, webhook_id: UUID, delivery_id: UUID) -> None:
        """Tell it once more. Raises `Conflict` if there is no such delivery, or it waits still."""
        values = {"id": webhook_id, "tenant_id": tenant_id, "delivery_id": delivery_id}
        async with self._database.tenant(tenant_id) as connection:
            if not (await connection.execute(_AGAIN, values)).rowcount:
                raise Conflict(f"There is no delivery {delivery_id} that has ended.")
            await self._jobs.defer(connection, DELIVER, tenant_id=tenant_id, delivery_id=delivery_id)

    async def deliver(self, tenant_id: UUID, delivery_id: UUID) -> float | None:
        """Tell a webhook of an event; return the seconds after which to try again, None = it has ended."""
        values = {"tenant_id": tenant_id, "delivery_id": delivery_id}
        rows = await self._database.fetch(tenant_id, _TO_SEND, values, dict_row)
        if not rows:
            return None
        row = rows[0]
        data = {"event_id": row["event_id"], "user_id": row["user_id"], **row["about"]}
        if row["text"] is not None and self._database.vault is None:  # where words are sealed, none leaves
            data["text"] = row["text"]
        body = {"type": row["kind"], "timestamp": row["at"], "data": data}
        status, error = await self._send(row, delivery_id, body)
        delivered = error is None
        over = not delivered and row["tries"] >= len(_WAITS_S)
        state = "delivered" if delivered else "failed" if over else "waiting"
        async with self._database.tenant(tenant_id) as connection:
            await connection.execute(_TRIED, {**values, "status": status, "error": error, "state": state})
        if over:
            log.warning("a webhook was not delivered", delivery_id=str(delivery_id), status=status)
        return _WAITS_S[row["tries"]] if state == "waiting" else None

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _deliver(self, job: RunningJob, *, delivery_id: UUID, **_: UUID) -> float | None:
        return await self.deliver(job.tenant_id, delivery_id)

    async def _send(
        self, row: dict[str, Any], message_id: UUID, message: dict[str, Any]
    ) -> tuple[int | None, str | None]:
        """Send a message; return the status, and why it failed."""
        body = orjson.dumps(message)
        moment = int(time.time())
        headers = {
            "content-type": "application/json",
            "user-agent": "Anamnesis",
            "webhook-id": str(message_id),
            "webhook-timestamp": str(moment),
            "webhook-signature": signature(row["secret"], str(message_id), moment, body),
        }
        try:
            async with self._http.stream("POST", row["url"], content=body, headers=headers) as answer:
                failed = None if answer.is_success else f"it answered with the status {answer.status_code}"
                return answer.status_code, failed
        except Unavailable as error:
            return None, error.message
        except (httpx2.HTTPError, OSError) as error:
            return None, f"it does not answer ({type(error).__name__})"


def signature(secret: str, message_id: str, moment: int, body: bytes) -> str:
    """Return the header `webhook-signature` of a message."""
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    signed = hmac.new(key, f"{message_id}.{moment}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"
