"""Collections in Milvus whose rows are found by words and by meaning: what every index of the service is made of.

Everything in them can be wiped and rebuilt from PostgreSQL, and nothing is ever shown from them: they answer with
ids. A collection is named by an alias (`services/search/shard.py`).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from services.errors import Unavailable
from services.platform.milvus import CollectionMissing, Milvus
from services.platform.patience import CircuitBreaker
from services.search.collection import TERMS_VERSION, is_of_model, is_of_older_version, make_collection
from services.search.shard import NewCollection, loaded, new_name, upsert

if TYPE_CHECKING:
    from pymilvus import CollectionSchema

Result = TypeVar("Result")
Hits = list[list[dict[str, Any]]]
"""For each query what was found, as Milvus answers."""

FORGET_PASSAGES = "forget_passages"
"""Job that removes chunks of removed documents and bases from the index."""
WRITING = "index_episodes"
"""Lock of writers into the index, and of permanent removals; writers of some users' episodes hold a part of it."""

_FLUSH_AFTER_ROWS, _MOST_UNFLUSHED = 64, 1024
"""Rows of a collection that are flushed when a writer is done, and earlier. Every search looks through those left
one by one; each flush makes a segment: at every 64 rows a quarter of Milvus' work in an import."""
_DELETED_AT_ONCE = 200
_SEARCH_S = 5.0
_CHECK_S = 5.0


class VectorIndex:
    """Adds, finds and removes rows of collections that are made alike."""

    def __init__(
        self,
        milvus: Milvus,
        *,
        model: str,
        dimension: int,
        of: str,
        prefix: str,
        version: str = TERMS_VERSION,
        add_own_fields: "Callable[[CollectionSchema], None] | None" = None,
    ) -> None:
        """Describe the collections.

        Args:
            milvus: where they are.
            model: embedding model.
            dimension: dimensions of its embeddings.
            of: what is indexed, for messages: "episodes".
            prefix: with which their names begin.
            version: of what is indexed of a text.
            add_own_fields: adds fields beside terms and embedding; None = those of a unit.
        """
        self.milvus = milvus
        self._model = model
        self._dimension = dimension
        self._of = of
        self._version = version
        self._physical = re.compile(rf"{prefix}(?:_\d\d)?_[0-9a-f]{{32}}")
        self._add_own_fields = add_own_fields
        self._unflushed: dict[str, int] = {}
        self._hurried = CircuitBreaker("Milvus", counts=lambda error: not isinstance(error, CollectionMissing))
        self._current: set[str] = set()
        """Names behind which is a collection of this embedding model."""
        self.outdated: set[str] = set()
        """Names behind which the last check found a collection of another model or an older version."""

    @property
    def made_with(self) -> str:
        """Return the settings that the collections depend on."""
        return f"{self._model} {self._dimension} {self._version}"

    async def check(self) -> None:
        """See whether all collections were made with this embedding model and by this version. Raises
        `Unavailable` if Milvus does not answer."""
        async with self.milvus.use() as client, asyncio.timeout(_CHECK_S):
            names = [name for name in await client.list_collections() if self._physical.fullmatch(name)]
            found = [(await client.describe_collection(name)).get("properties") or {} for name in names]
        self.outdated = {
            name.rpartition("_")[0]
            for name, each in zip(names, found, strict=True)
            if is_of_older_version(each, self._version) or not self._is_of_model(each)
        }

    async def is_of_model(self, name: str) -> bool:
        """Whether a collection holds embeddings of this model; of another one only its words are searched.
        Raises `CollectionMissing` if there is no such collection, and `Unavailable` if Milvus does not answer."""
        if name not in self._current:
            async with self.milvus.use() as client, asyncio.timeout(_CHECK_S):
                found = await client.describe_collection(name)
            if self._is_of_model(found.get("properties") or {}):
                self._current.add(name)
        return name in self._current

    async def search(
        self,
        name: str,
        chosen: str,
        texts: Sequence[str],
        vectors: Sequence[Sequence[float]],
        limits: tuple[int, int],
        fields: Sequence[str],
        *,
        within_s: float | None = None,
    ) -> tuple[Hits, Hits]:
        """Search a collection by words and by meaning at the same time; each query has its own list of hits.

        Args:
            name: of the collection.
            chosen: a filter of our own ids and names; text of a caller never gets here.
            texts: terms joined by spaces; an empty one finds nothing.
            vectors: embeddings; may be empty.
            limits: hits for each query by words, and by meaning.
            fields: that are answered.
            within_s: see `in_time`; None = at most five seconds.

        Raises:
            CollectionMissing: there is no such collection.
            Unavailable: Milvus does not answer, or not in time.
        """
        full = [text for text in texts if text]
        by_words, by_meaning = limits
        cosine = {"metric_type": "COSINE", "params": {"ef": 2 * by_meaning}}

        async def both() -> tuple[Hits, Hits]:
            if vectors and not await self.is_of_model(name):
                found = await self.find(name, chosen, "sparse", full, {"metric_type": "BM25"}, by_words, fields)
                return found, [[] for _ in vectors]
            return await asyncio.gather(
                self.find(name, chosen, "sparse", full, {"metric_type": "BM25"}, by_words, fields),
                self.find(name, chosen, "embedding", vectors, cosine, by_meaning, fields),
            )

        async def search() -> tuple[Hits, Hits]:
            try:
                return await both()
            except CollectionMissing:  # a new collection may just have replaced it
                return await both()

        words, meaning = await (search() if within_s is None else self.in_time(search, within_s))
        lists = iter(words)
        return [next(lists) if text else [] for text in texts], meaning

    async def find(
        self,
        name: str,
        chosen: str,
        field: str,
        data: Sequence[Any],
        params: dict[str, Any],
        limit: int,
        fields: Sequence[str],
        *,
        timeout_s: float = _SEARCH_S,
    ) -> Hits:
        """Search one field of a collection; raises as `search`."""
        if not data:
            return []
        async with self.milvus.use() as client, asyncio.timeout(timeout_s):
            ask = partial(client.search, name, list(data), chosen, limit, list(fields), params, anns_field=field)
            return list(await loaded(client, name, ask))

    async def in_time(self, search: Callable[[], Awaitable[Result]], within_s: float) -> Result:
        """Wait at most `within_s` seconds; after several late answers in a row Milvus is left alone for a
        while. Raises `Unavailable` if Milvus does not answer, or not in time."""
        await self.milvus.awake()
        async with self._hurried.use():
            try:
                async with asyncio.timeout(within_s):  # `wait_for` may drop a cancellation before Python 3.12
                    return await search()
            except TimeoutError:
                raise Unavailable("Milvus does not answer in time.") from None

    async def upsert(
        self, name: str, entities: Sequence[dict[str, Any]], *, lost: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Add or replace rows.

        Args:
            name: of the collection; it is made if it is not there.
            entities: the rows, by the names of their fields.
            lost: called before the collection is made: what it may have held is lost.

        Raises:
            Unavailable: Milvus does not answer, or the collection holds embeddings of another model.
        """
        try:
            await self._write(name, entities)
        except CollectionMissing:
            if lost is not None:
                await lost()
            physical = await self._make(name)
            async with self.milvus.use() as client:
                await client.create_alias(physical, name)
            await self._write(name, entities)
        self._unflushed[name] = self._unflushed.get(name, 0) + len(entities)
        if self._unflushed[name] >= _MOST_UNFLUSHED:
            await self.flush(name)

    async def flush_written(self) -> None:
        """Flush what has been added, but for a few rows. Raises `Unavailable` if Milvus does not answer."""
        for name in [name for name, rows in self._unflushed.items() if rows >= _FLUSH_AFTER_ROWS]:
            await self.flush(name)

    async def flush(self, name: str) -> None:
        """Make a collection's newest rows part of its indexes. Raises `Unavailable` if Milvus does not answer."""
        async with self.milvus.use() as client:
            await client.flush(name)
        self._unflushed[name] = 0

    async def delete(self, name: str, filters: Iterable[str]) -> int:
        """Remove the rows that a filter chooses; return how many there were. Raises `Unavailable` if Milvus
        does not answer."""
        count = 0
        try:
            async with self.milvus.use() as client:
                for chosen in filters:
                    removed = await loaded(client, name, partial(client.delete, name, filter=chosen))
                    count += removed.get("delete_count", 0) if isinstance(removed, dict) else len(removed)
        except CollectionMissing:
            return 0
        return count

    async def begin_again(self, name: str) -> NewCollection:
        """Make an empty collection beside the present one, to be filled and then put in its place. Raises
        `Unavailable` if Milvus does not answer."""
        return NewCollection(self.milvus, name, await self._make(name))

    async def _write(self, name: str, entities: Sequence[dict[str, Any]]) -> None:
        async with self.milvus.use() as client:
            found = await client.describe_collection(name)
        if not self._is_of_model(found.get("properties") or {}):
            raise Unavailable(f"The index of {self._of} is being rebuilt for the embedding model {self._model}.")
        await upsert(self.milvus, name, entities)

    async def _make(self, name: str) -> str:
        physical = new_name(name)
        make = partial(
            make_collection,
            name=physical,
            model=self._model,
            dimension=self._dimension,
            version=self._version,
            add_own_fields=self._add_own_fields,
        )
        await self.milvus.in_thread(make)
        return physical

    def _is_of_model(self, properties: dict[str, Any]) -> bool:
        return is_of_model(properties, self._model, self._dimension)


def any_of(field: str, values: Iterable[object]) -> list[str]:
    """Filters that together choose the rows with one of these ids in a field."""
    ids = [f'"{value}"' for value in values]
    groups = (ids[start : start + _DELETED_AT_ONCE] for start in range(0, len(ids), _DELETED_AT_ONCE))
    return [f"{field} in [{', '.join(group)}]" for group in groups]
