"""A Milvus Lite server of a test's own, to stop, pause and kill; and the real content of an index."""

import asyncio
import contextlib
import logging
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
from pymilvus import MilvusClient

from services.platform.embedded_milvus import EmbeddedMilvus
from tests.support.ports import free_port, wait_for_port

_ASKED, _PATIENCE_S = 6, 20
"""Number of signals, and seconds to wait: a server that has just begun to listen may miss the first."""


@contextmanager
def embedded_milvus(folder: Path) -> Iterator[str]:
    """Run a Milvus Lite as the service does, and yield its address."""
    with asyncio.Runner() as runner:
        server = EmbeddedMilvus(folder)
        server.launch()
        runner.run(server.wait())
        yield server.uri
        runner.run(server.stop())


class MilvusServer:
    """One server on one port over one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.uri = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and wait until it listens."""
        self.folder.mkdir(parents=True, exist_ok=True)
        where = ["--data-dir", str(self.folder), "--host", "127.0.0.1", "--port", str(self.port)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "services.platform.milvus_lite_server", "server", *where],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for_port(self.port)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal if it is running; return when a signal that pauses has taken effect."""
        if self._process is not None and self.alive:
            self._process.send_signal(number)
            while number == signal.SIGSTOP and psutil.Process(self._process.pid).status() != psutil.STATUS_STOPPED:
                time.sleep(0.01)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it if it is running; SIGKILL stands for a power cut."""
        if self._process is not None:
            self.send(signal.SIGCONT)
            for _ in range(_ASKED):
                self.send(how)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_PATIENCE_S)
                    break
            else:
                raise AssertionError("Milvus Lite does not end")
            self._process = None

    def restart(self, how: signal.Signals = signal.SIGINT, *, empty: bool = False) -> None:
        """Restart it on its port; with `empty` its folder is deleted in between."""
        self.stop(how)
        if empty:
            shutil.rmtree(self.folder)
        self.start()


@dataclass(frozen=True)
class IndexedUnit:
    id: UUID
    episode_id: UUID
    user_id: UUID
    terms: str


def indexed(uri: str) -> list[IndexedUnit]:
    """Return every row of every shard in use, as Milvus itself reports it."""
    with _client(uri) as client:
        found: list[dict[str, Any]] = []
        names = {each.rpartition("_")[0] for each in client.list_collections()} - {"kb_chunks"}
        for name in sorted(names):
            client.load_collection(name)
            rows = client.query_iterator(name, output_fields=["id", "episode_id", "user_id", "terms"])
            while batch := rows.next():
                found += batch
            rows.close()
    return [
        IndexedUnit(UUID(r["id"].partition(".")[0]), UUID(r["episode_id"]), UUID(r["user_id"]), r["terms"])
        for r in found
    ]


def indexed_chunks(uri: str, base_id: UUID) -> Counter[UUID]:
    """How often each chunk of a knowledge base is in the index."""
    with _client(uri) as client:
        if not client.has_collection("kb_chunks"):
            return Counter()
        client.load_collection("kb_chunks")
        rows = client.query_iterator("kb_chunks", filter=f'base_id == "{base_id}"', output_fields=["id"])
        found: list[dict[str, Any]] = []
        while batch := rows.next():
            found += batch
        rows.close()
    return Counter(UUID(row["id"]) for row in found)


def of_user(uri: str, user_id: UUID) -> Counter[UUID]:
    """How often each unit of a user is in the index."""
    return Counter(unit.id for unit in indexed(uri) if unit.user_id == user_id)


def collections(uri: str) -> list[str]:
    """Names of all collections, those in use and others."""
    with _client(uri) as client:
        return sorted(client.list_collections())


@contextmanager
def _client(uri: str) -> Iterator[MilvusClient]:
    # It prints warnings about a server that is young.
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
    client = MilvusClient(uri=uri, timeout=60)
    try:
        yield client
    finally:
        client.close()


def files_with_rows(folder: Path, text: str) -> list[str]:
    """Return the files of an index that hold the text; rows are compressed, so each file is decoded."""
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        held = path.read_bytes()
        if path.suffix == ".parquet":
            held += str(pyarrow.parquet.read_table(path).to_pydict()).encode()
        elif path.suffix == ".arrow":
            with contextlib.suppress(pyarrow.ArrowInvalid), pyarrow.ipc.open_stream(path) as rows:
                for batch in rows:
                    held += str(batch.to_pydict()).encode()
        if text.encode() in held:
            found.append(str(path.relative_to(folder)))
    return found
