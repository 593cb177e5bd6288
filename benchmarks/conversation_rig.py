"""The service with a language model that records its prompts, and with the database beside it."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID

import httpx
import psycopg

from benchmarks.dialogue import CHAT_MODEL, SMALL_MODEL, answer, milliseconds_since, reported_tokens
from benchmarks.processes import ROOT, child, environment_without_settings, free_port, wait_for
from services.identity.tenants import DEFAULT_TENANT
from services.platform.embedded_postgres import EmbeddedPostgres
from tests.support.model_server import ModelServer

USER = "talker"
_SERVE = "from api.cli.main import app; app()"
_SETTLED_S = 10.0
_LOOK_S = 0.005

_EXPERT: LiteralString = """
INSERT INTO experts (id, tenant_id, name, system_prompt, context_strategy, context_window)
SELECT gen_random_uuid(), tenant_id, %(strategy)s, system_prompt, %(strategy)s, %(window)s
FROM experts WHERE tenant_id = %(tenant_id)s AND name = 'default'
"""
_UNFINISHED: LiteralString = """
SELECT count(*) FROM procrastinate_jobs
WHERE status = 'doing' OR status = 'todo' AND coalesce(scheduled_at, now()) <= now()
"""


@dataclass
class Rig:
    """A running service and what stands around it."""

    http: httpx.Client
    model: ModelServer
    database: "psycopg.Connection[Any]"
    """Connection of the superuser, whom no row-level security holds back."""
    pid: int
    """Id of the service's process."""

    def add_expert(self, strategy: str, window: int = 32_000) -> None:
        """Add an expert of this strategy, by the name of the strategy."""
        values = {"strategy": strategy, "window": window, "tenant_id": DEFAULT_TENANT}
        self.database.execute(_EXPERT, values)

    def say(self, session: str, message: str, expert: str | None = None) -> dict[str, Any]:
        """Send a message; return the answer's whole body."""
        body = {"user_id": USER, "session_id": session, "message": message, "expert": expert}
        return self._json(self.http.post("/api/v1/chat", json=body))

    def turn(self, turn_id: str) -> dict[str, Any]:
        """A turn as it is stored."""
        return self._json(self.http.get(f"/api/v1/turns/{turn_id}"))

    def first_token_ms(self, session: str, message: str) -> float:
        """Send a message and read its stream to the end; return when the first token came."""
        body = {"user_id": USER, "session_id": session, "message": message}
        begun, first = time.perf_counter(), None
        with self.http.stream("POST", "/api/v1/chat/stream", json=body) as response:
            response.raise_for_status()
            for line in response.iter_lines():
                if first is None and line == "event: token":
                    first = milliseconds_since(begun)
        if first is None:
            raise RuntimeError("a stream had no token")
        return first

    def settle(self) -> bool:
        """Wait until the work behind the turns is done; return whether it was in time."""
        end = time.monotonic() + _SETTLED_S
        while time.monotonic() < end:
            row = self.database.execute(_UNFINISHED).fetchone()
            if row == (0,):
                return True
            time.sleep(_LOOK_S)
        return False

    def topics_of(self, conversation_id: str) -> int:
        """How many topics of a conversation are archived."""
        row = self.database.execute("SELECT count(*) FROM topics WHERE conversation_id = %s", [conversation_id])
        return int((row.fetchone() or (0,))[0])

    def conversation(self, session: str) -> UUID:
        """The id of a conversation."""
        row = self.database.execute("SELECT id FROM conversations WHERE session_key = %s", [session]).fetchone()
        if row is None:
            raise LookupError(session)
        return UUID(str(row[0]))

    @staticmethod
    def _json(response: httpx.Response) -> dict[str, Any]:
        if response.is_error:
            raise RuntimeError(f"{response.status_code}: {response.text}")
        content: dict[str, Any] = response.json()
        return content


@contextmanager
def rig(*, scale: float = 1.0, **settings: str) -> Iterator[Rig]:
    """The service over new data, with the settings, ready."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with (
        tempfile.TemporaryDirectory(prefix="anamnesis-bench-", ignore_cleanup_errors=True) as name,
        ModelServer() as model,
    ):
        folder = Path(name)
        folder.chmod(0o755)  # root's embedded PostgreSQL runs under another account
        model.default, model.input_tokens = partial(answer, scale=scale), reported_tokens
        environment = {
            **environment_without_settings(),
            "PYTHONPATH": str(ROOT),
            "ANAMNESIS_DATA_DIR": str(folder / "data"),
            "ANAMNESIS_LLM_MODEL": CHAT_MODEL,
            "ANAMNESIS_SMALL_LLM_MODEL": SMALL_MODEL,
            "ANAMNESIS_LLM_BASE_URL": model.base_url,
            "ANAMNESIS_LLM_API_KEY": "x",
            "ANAMNESIS_LOG_LEVEL": "warning",
            **{f"ANAMNESIS_{name.upper()}": value for name, value in settings.items()},
        }
        arguments = ["-c", _SERVE, "serve", "--port", str(port)]
        with child(arguments, environment=environment, folder=folder) as process:
            wait_for(process, f"{url}/readyz", b'{"state":"ok"')
            postgres = EmbeddedPostgres(folder / "data")
            asyncio.run(postgres.start())  # the service has started it; this finds it
            with (
                httpx.Client(base_url=url, timeout=60) as http,
                psycopg.connect(postgres.url("postgres"), autocommit=True) as database,
            ):
                yield Rig(http, model, database, process.pid)
