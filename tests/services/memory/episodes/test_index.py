"""What the index promises, against Milvus Lite as a server."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest

from services.errors import Unavailable
from services.memory.episodes.episode import Scope
from services.memory.episodes.index import EpisodeIndex
from services.memory.episodes.index_row import NAME, SHARDS, IndexRow, as_entity, shard_of
from services.platform.embedded_milvus import EmbeddedMilvus
from services.platform.milvus import CollectionMissing, Milvus
from services.search.collection import VERSION
from services.text.tokenizer import terms
from tests.support.lexical_embeddings import LexicalEmbeddings
from tests.support.milvus_server import collections, indexed, of_user

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.untraced]

MODEL, DIMENSIONS = "lexical", 256
EMBEDDINGS = LexicalEmbeddings(DIMENSIONS)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Store:
    """An index and where it is."""

    index: EpisodeIndex
    milvus: Milvus
    uri: str


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server for this module: its collections are of another embedding model than those of all others."""
    with asyncio.Runner() as runner:
        server = EmbeddedMilvus(tmp_path_factory.mktemp("milvus"))
        server.launch()
        runner.run(server.wait())
        yield server.uri
        runner.run(server.stop())


@pytest.fixture
async def store(uri: str) -> AsyncIterator[Store]:
    """An index over it."""
    milvus = Milvus(uri)
    yield Store(EpisodeIndex(milvus, model=MODEL, dimension=DIMENSIONS), milvus, uri)
    await milvus.close()


@pytest.fixture
def user() -> Scope:
    """A user whose shard others share."""
    return Scope(uuid4(), uuid4(), uuid4())


def beside(user_id: UUID) -> UUID:
    """Another user of the same shard."""
    return UUID(int=uuid4().int // SHARDS * SHARDS + user_id.int % SHARDS)


def row(scope: Scope, text: str, **values: Any) -> IndexRow:
    """A unit that says this."""
    unit_id = uuid4()
    return replace(
        IndexRow(
            unit_id=unit_id,
            episode_id=unit_id,
            tenant_id=scope.tenant_id,
            user_id=scope.user_id,
            expert_id=scope.expert_id,
            conversation_id=scope.conversation_id,
            episode_type="turn",
            importance=0.5,
            created_at=NOW,
            terms=terms(text),
            embedding=EMBEDDINGS.embed_query(text),
        ),
        **values,
    )


async def find(store: Store, scope: Scope, text: str, limit: int = 10) -> tuple[list[UUID], list[UUID]]:
    """Units found by words, and by meaning."""
    lexical, dense = await store.index.search(scope, [terms(text)], [EMBEDDINGS.embed_query(text)], limit)
    return [hit.unit_id for hit in lexical[0]], [hit.unit_id for hit in dense[0]]


def ids(rows: Sequence[IndexRow]) -> set[UUID]:
    return {each.unit_id for each in rows}


async def test_a_unit_that_is_written_twice_is_there_once_as_it_was_written_last(
    store: Store, user: Scope
) -> None:
    dog = row(user, "My dog is called Bruno")
    await store.index.upsert([dog])
    await store.index.upsert([dog])
    await store.index.flush(shard_of(user.user_id))
    await store.index.upsert([replace(dog, terms=terms("My cat is called Minka"))])
    assert of_user(store.uri, user.user_id) == {dog.unit_id: 1}
    assert (await find(store, user, "Minka"))[0] == [dog.unit_id]
    assert (await find(store, user, "Bruno"))[0] == []


async def test_the_best_is_first_by_words_and_by_meaning(store: Store, user: Scope) -> None:
    texts = ("我养了一只叫布鲁诺的狗", "I work as a gardener in Lisbon", "昨天看了电影《盗梦空间》")
    rows = [row(user, text) for text in texts]
    await store.index.upsert(rows)
    for text, expected in zip(("布鲁诺是狗吗", "gardener Lisbon", "盗梦空间"), rows, strict=True):
        lexical, dense = await find(store, user, text)
        assert lexical[0] == dense[0] == expected.unit_id
    by_words, by_meaning = await store.index.search(user, [["lisbon"], [], ["布鲁诺"]], [], 10)
    assert [len(hits) for hits in by_words] == [1, 0, 1]
    assert by_meaning == []


async def test_who_has_few_units_among_many_is_found_with_all_of_them(store: Store, user: Scope) -> None:
    words = Random(3)

    def some(count: int) -> str:
        return "tea " + " ".join(f"w{words.randrange(3000)}" for _ in range(count))

    few = [replace(user, user_id=beside(user.user_id)) for _ in range(48)]  # some beside the others' many
    rows = [row(user, some(6)) for _ in range(3000)] + [row(scope, some(6)) for scope in few for _ in range(4)]
    await store.index.upsert(rows)
    await store.index.flush(shard_of(user.user_id))
    for scope in few:
        for _ in range(3):
            assert len((await find(store, scope, some(3)))[1]) == 4


async def test_a_scope_narrows_to_a_conversation_a_type_and_a_time(store: Store, user: Scope) -> None:
    here, there = uuid4(), uuid4()
    rows = [
        row(user, "tea one", conversation_id=here, created_at=NOW - timedelta(days=1)),
        row(user, "tea two", conversation_id=there),
        row(user, "tea three", episode_type="preference", created_at=NOW + timedelta(milliseconds=1)),
    ]
    await store.index.upsert(rows)
    one, two, three = (each.unit_id for each in rows)
    for narrowed, expected in (
        (user, {one, two, three}),
        (replace(user, conversation_id=here), {one}),
        (replace(user, episode_type="preference"), {three}),
        (replace(user, since=NOW), {two, three}),
        (replace(user, until=NOW), {one}),
        (replace(user, since=NOW, until=NOW + timedelta(milliseconds=1)), {two}),
        (replace(user, conversation_id=there, episode_type="preference"), set()),
        (replace(user, expert_id=uuid4()), set()),
    ):
        lexical, dense = await find(store, narrowed, "tea")
        assert set(lexical) == set(dense) == expected


async def test_some_or_all_of_a_user_is_forgotten_and_nothing_else(store: Store, user: Scope) -> None:
    other = replace(user, user_id=beside(user.user_id))
    mine = [row(user, f"tea {number}") for number in range(250)]
    others = [row(other, "tea too")]
    await store.index.upsert([*mine, *others])
    assert await store.index.forget(other.user_id, [mine[0].episode_id]) == 0
    await store.index.forget(user.user_id, [each.episode_id for each in mine[:240]])
    assert set(of_user(store.uri, user.user_id)) == ids(mine[240:])
    await store.index.forget(user.user_id, [])
    assert set(of_user(store.uri, user.user_id)) == ids(mine[240:])
    await store.index.forget(user.user_id)
    assert of_user(store.uri, user.user_id) == {}
    assert await find(store, user, "tea") == ([], [])
    assert await find(store, other, "tea") == ([others[0].unit_id], [others[0].unit_id])


async def test_a_shard_that_is_not_there_is_told_before_it_is_made(tmp_path: Path, user: Scope) -> None:
    milvus = Milvus(str(tmp_path / "empty.db"))
    store = Store(EpisodeIndex(milvus, model=MODEL, dimension=DIMENSIONS), milvus, "")
    with pytest.raises(CollectionMissing):
        await find(store, user, "tea")
    assert not milvus.failing
    assert await store.index.forget(user.user_id) == 0
    told: list[tuple[int, int]] = []

    async def lost(shard: int, shards: int) -> None:
        told.append((shard, shards))
        with pytest.raises(CollectionMissing):
            await find(store, user, "tea")

    for _ in range(2):
        await store.index.upsert([row(user, "tea")], lost=lost)
    assert told == [(shard_of(user.user_id), SHARDS)]
    await milvus.close()


@pytest.mark.parametrize("word", ["tea", "狗狗", "😀狗", "界"])
async def test_a_long_text_is_found_by_its_beginning(store: Store, user: Scope, word: str) -> None:
    many = row(user, "", terms=[f"{word}{number}" for number in range(4000)])
    one = row(user, "", terms=[word * 5000])
    await store.index.upsert([many, one])
    lexical, _ = await store.index.search(user, [[f"{word}0"], [f"{word}3999"]], [], 10)
    assert [[hit.unit_id for hit in hits] for hits in lexical] == [[many.unit_id], []]
    stored = {unit.id: unit.terms for unit in indexed(store.uri) if unit.user_id == user.user_id}
    assert 7900 < len(stored[many.unit_id].encode()) <= 8000
    assert set(stored[many.unit_id].split()) <= set(many.terms)
    assert (word * 5000).startswith(stored[one.unit_id])
    assert 7900 < len(stored[one.unit_id].encode()) <= 8000


async def test_units_without_terms_and_without_direction_are_kept_and_harm_nobody(
    store: Store, user: Scope
) -> None:
    silent = row(user, "tea", terms=[])
    nowhere = row(user, "cake", embedding=[0.0] * DIMENSIONS)
    usual = row(user, "tea and cake")
    await store.index.upsert([silent, nowhere, usual])
    lexical, dense = await find(store, user, "tea and cake")
    assert set(lexical) == {nowhere.unit_id, usual.unit_id}
    assert dense[0] == usual.unit_id
    _, everywhere = await store.index.search(user, [[]], [[0.0] * DIMENSIONS], 10)
    assert {hit.unit_id for hit in everywhere[0]} <= {silent.unit_id, nowhere.unit_id, usual.unit_id}
    assert of_user(store.uri, user.user_id).total() == 3


NASTY = ('" or 1==1 --', "\\", '\\"', "'; drop", "a\x00b", "😀", '") or user_id != ("', "%s{}{0}", "\n", "")


async def test_terms_that_would_break_a_filter_are_only_words(store: Store, user: Scope) -> None:
    other = replace(user, user_id=beside(user.user_id))
    kept = row(other, "secret", terms=["secret", *NASTY])
    await store.index.upsert([kept])
    mine = [row(user, "", terms=[text, "own"]) for text in NASTY]
    await store.index.upsert(mine)
    for text in NASTY:
        lexical, _ = await store.index.search(user, [[text, "secret"], ["own"]], [], 20)
        assert {hit.unit_id for hit in lexical[0]} <= ids(mine)
        assert {hit.unit_id for hit in lexical[1]} == ids(mine)
    assert of_user(store.uri, other.user_id) == {kept.unit_id: 1}


async def test_nobody_finds_what_is_anothers_with_the_same_texts_in_the_same_shard(
    store: Store, user: Scope
) -> None:
    strangers = {
        "user": replace(user, user_id=beside(user.user_id)),
        "tenant": Scope(uuid4(), beside(user.user_id), user.expert_id),
    }
    here = uuid4()
    rows = {name: row(scope, "the same secret", conversation_id=here) for name, scope in strangers.items()}
    rows["me"] = row(user, "the same secret", conversation_id=here)
    await store.index.upsert(list(rows.values()))
    for name, scope in {**strangers, "me": user}.items():
        for asked in (scope, replace(scope, conversation_id=here)):
            assert await find(store, asked, "the same secret") == ([rows[name].unit_id],) * 2
    # Ids that were guessed: another's user with one's own tenant, and the reverse.
    guessed = (
        replace(user, tenant_id=strangers["tenant"].tenant_id),
        replace(strangers["tenant"], tenant_id=user.tenant_id),
        replace(user, expert_id=uuid4()),
    )
    for scope in guessed:
        assert await find(store, scope, "the same secret") == ([], [])


async def test_an_index_of_another_model_is_searched_by_words_alone_and_not_written(
    tmp_path: Path, user: Scope
) -> None:
    milvus = Milvus(str(tmp_path / "index.db"))
    kept = row(user, "tea")
    await EpisodeIndex(milvus, model=MODEL, dimension=DIMENSIONS).upsert([kept])
    for model, dimension in (("another", DIMENSIONS), (MODEL, 16)):
        other = EpisodeIndex(milvus, model=model, dimension=dimension)
        words, meaning = await other.search(user, [terms("tea")], [[1.0] * dimension], 5)
        assert [[hit.unit_id for hit in hits] for hits in words] == [[kept.unit_id]]
        assert meaning == [[]]
        assert (await other.rows(user, [kept.unit_id], within_s=5.0))[kept.unit_id][1] is None
        with pytest.raises(Unavailable, match=f"being rebuilt for the embedding model {model}"):
            await other.upsert([row(user, "tea")])
        assert not other.is_outdated
        await other.check()
        assert other.is_outdated
    await milvus.close()


async def test_an_index_of_an_older_version_is_noticed_until_it_is_rebuilt(store: Store, user: Scope) -> None:
    old = row(user, "tea")
    await store.index.upsert([old])
    await store.index.check()
    assert not store.index.is_outdated
    name = NAME.format(shard=shard_of(user.user_id))
    await store.milvus.in_thread(lambda client: client.alter_collection_properties(name, {VERSION: "1"}))
    await store.index.check()
    assert store.index.is_outdated
    fresh = await store.index.begin_again(shard_of(user.user_id))
    await fresh.add([as_entity(old)])
    await fresh.put_in_place()
    await store.index.check()
    assert not store.index.is_outdated


async def test_a_new_shard_takes_its_place_whole(store: Store, user: Scope) -> None:
    shard = shard_of(user.user_id)
    old = row(user, "the old tea")
    await store.index.upsert([old])
    abandoned = await store.index.begin_again(shard)
    await abandoned.add([as_entity(old)])
    fresh = await store.index.begin_again(shard)
    await fresh.add([as_entity(row(user, "the new tea"))])
    assert (await find(store, user, "tea"))[0] == [old.unit_id]
    await fresh.put_in_place()
    assert len((await find(store, user, "new tea"))[0]) == 1
    assert old.unit_id not in of_user(store.uri, user.user_id)
    mine = f"conversation_episodes_{shard:02d}_"
    assert len([name for name in collections(store.uri) if name.startswith(mine)]) == 1
    await store.index.begin_again(shard)
    await store.index.remove_leftovers(user.user_id)
    assert len([name for name in collections(store.uri) if name.startswith(mine)]) == 1
    assert len((await find(store, user, "new tea"))[0]) == 1


async def test_written_anew_it_answers_as_before(store: Store, user: Scope) -> None:
    other = replace(user, user_id=beside(user.user_id))
    rows = [row(user, f"tea {number}") for number in range(450)]
    await store.index.upsert([*rows, row(other, "tea")])
    await store.index.forget(other.user_id)
    before = await find(store, user, "tea 77", limit=50)
    assert await store.index.rewrite() >= len(rows)
    assert of_user(store.uri, user.user_id) == dict.fromkeys(ids(rows), 1)
    assert of_user(store.uri, other.user_id) == {}
    after = await find(store, user, "tea 77", limit=50)
    assert after[0][0] == before[0][0] == rows[77].unit_id
    async with store.milvus.use() as client:
        name = f"conversation_episodes_{shard_of(user.user_id):02d}"
        copied = await client.get(name, ids=[str(rows[77].unit_id)], output_fields=["embedding"])
    assert [float(value) for value in copied[0]["embedding"]] == pytest.approx(list(rows[77].embedding))
