"""Memory that an index takes in the embedded Milvus.

`python -m benchmarks.index_memory [--units 110000] [--users 200]`

Units with random embeddings of 512 dimensions and 25 terms each are written as the service writes them, in the
shards of their users. Then the server is started again, and every user's units are read, as for a working set,
and searched by words. Memory is the resident size of the server's process, which is not started again while it is
unused, as the service would do.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import psutil

from services.memory.episodes.index import collection_name, shard_of
from services.platform.embedded_milvus import EmbeddedMilvus
from services.platform.milvus import pymilvus
from services.search.collection import make_collection

_DIMENSIONS, _TERMS, _WORDS = 512, 25, 8_000
_WRITTEN_AT_ONCE, _FLUSHED_AFTER = 50, 64
_SHARDS = 64


def entity(user_id: UUID, random: np.random.Generator) -> dict[str, object]:
    """A unit of a user, in the form in which the index stores it; few words are frequent."""
    ids = {f"{name}_id": str(uuid4()) for name in ("episode", "tenant", "expert", "conversation")}
    words = (20 * random.pareto(1, _TERMS)).astype(int) % _WORDS
    vector = random.standard_normal(_DIMENSIONS).astype(np.float32)
    return ids | {
        "id": str(uuid4()),
        "user_id": str(user_id),
        "episode_type": "message",
        "importance": 0.5,
        "created_at": 1,
        "terms": " ".join(f"w{word}" for word in words),
        "embedding": (vector / np.linalg.norm(vector)).tolist(),
    }


class Server:
    """The server, and the client of its writers and readers."""

    def __init__(self, folder: Path, runner: asyncio.Runner) -> None:
        """Start it."""
        self._runner = runner
        self.milvus = EmbeddedMilvus(folder)
        self.milvus.launch()
        runner.run(self.milvus.wait())
        self.client = pymilvus().MilvusClient(uri=self.milvus.uri, timeout=120)

    def tell(self, moment: str) -> None:
        """Print how large it is."""
        size = psutil.Process(self.milvus.standby.read()["pid"]).memory_info().rss
        print(f"{moment:32} {size / 2**20:6.0f} MB", flush=True)

    def stop(self) -> None:
        """Stop it."""
        self.client.close()
        self._runner.run(self.milvus.stop())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.index_memory", description=__doc__)
    parser.add_argument("--units", type=int, default=110_000)
    parser.add_argument("--users", type=int, default=200)
    options = parser.parse_args()
    random = np.random.default_rng(1)
    users = {user: collection_name(shard_of(user), _SHARDS) for user in (uuid4() for _ in range(options.users))}
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory(prefix="anamnesis-index-") as folder:
        server = Server(Path(folder), runner)
        server.tell("empty")
        for name in set(users.values()):
            make_collection(server.client, name, model="random", dimension=_DIMENSIONS)
        for user, name in users.items():
            for begin in range(0, options.units // options.users, _WRITTEN_AT_ONCE):
                server.client.upsert(name, [entity(user, random) for _ in range(_WRITTEN_AT_ONCE)])
                if begin % (2 * _FLUSHED_AFTER) < _WRITTEN_AT_ONCE:
                    server.client.flush(name)
        server.tell("written")
        server.stop()
        server = Server(Path(folder), runner)
        server.tell("started again")
        for user, name in users.items():
            server.client.load_collection(name)
            server.client.query(name, f'user_id == "{user}"', ["id", "terms", "embedding"], limit=1000)
        server.tell("read for every user")
        for user, name in users.items():
            server.client.search(
                name, ["w1 w5 w30"], f'user_id == "{user}"', 20, None, {"metric_type": "BM25"}, anns_field="sparse"
            )
        server.tell("searched by words for every user")
        server.stop()


if __name__ == "__main__":
    main()
