"""What LangGraph's own tests ask of a store, with and without an event loop, over HTTP."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, cast

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    SearchOp,
)
from psycopg.rows import tuple_row

from anamnesis_client import ServiceError
from langchain_anamnesis import AnamnesisStore
from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT

_numbers = itertools.count()
Namespaces = list[tuple[str, ...]]


class Used:
    """A store whose methods are used as coroutines, whichever they are."""

    def __init__(self, store: BaseStore, *, has_loop: bool) -> None:
        self._store, self._has_loop = store, has_loop

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if self._has_loop:
            found: Callable[..., Awaitable[Any]] = getattr(self._store, f"a{name}")
            return found
        return lambda *given, **named: asyncio.to_thread(getattr(self._store, name), *given, **named)

    async def put_each(self, values: dict[str, Any], namespace: tuple[str, ...] = ("test",), **more: Any) -> None:
        for key, value in values.items():
            await self.put(namespace, key, value, **more)

    async def put_into(self, namespaces: Iterable[tuple[str, ...]]) -> None:
        await self.batch([PutOp(each, "k", {"v": 1}) for each in namespaces])

    async def keys(self, *prefix: str, **wanted: Any) -> list[str]:
        return [each.key for each in await self.search(prefix or ("test",), **wanted)]


@pytest.fixture
def has_loop(request: pytest.FixtureRequest) -> bool:
    """Whether the methods for an event loop are used: yes, unless a parameter says otherwise."""
    return bool(getattr(request, "param", True))


Opened = Callable[..., Used]


@pytest.fixture
async def opened(url: str, has_loop: bool) -> AsyncIterator[Opened]:
    stores = []

    def made(**options: Any) -> Used:
        stores.append(AnamnesisStore(url, **{"user": f"u-{next(_numbers)}", **options}))
        return Used(stores[-1], has_loop=has_loop)

    yield made
    for store in stores:
        await store.__aexit__(None, None, None)


@pytest.fixture
async def store(opened: Opened) -> Used:
    return opened()


@pytest.mark.parametrize("has_loop", [True, False], indirect=True, ids=["async", "sync"])
async def test_an_item_is_put_changed_and_removed(store: Used) -> None:
    namespace = ("test", "documents")
    value = {"title": "Test", "content": "Hello, World!", "deep": {"list": [1, 2.5, None, True]}}
    await store.put(namespace, "doc1", value)
    first = await store.get(namespace, "doc1")
    assert isinstance(first, Item)
    assert (first.namespace, first.key, first.value) == (namespace, "doc1", value)
    await store.put(namespace, "doc1", {"title": "Updated"})
    second = await store.get(namespace, "doc1")
    assert second.value == {"title": "Updated"}
    assert second.updated_at > first.updated_at
    assert second.created_at == first.created_at
    assert await store.get(("test", "other"), "doc1") is None
    assert await store.get(namespace, "doc2") is None
    await store.delete(namespace, "doc1")
    assert await store.get(namespace, "doc1") is None
    assert await store.list_namespaces() == []
    await store.put(namespace, "doc1", {"n": 2})
    await store.put(namespace, "doc1", None)
    assert await store.get(namespace, "doc1") is None


@pytest.mark.parametrize("has_loop", [True, False], indirect=True, ids=["async", "sync"])
async def test_results_are_in_the_order_of_their_operations(store: Used) -> None:
    await store.put(("test", "foo"), "key1", {"data": "value1"})
    await store.put(("test", "bar"), "key2", {"data": "value2"})
    item, put, found, names, missing = await store.batch(
        [
            GetOp(("test", "foo"), "key1"),
            PutOp(("test", "bar"), "key2", {"data": "value3"}),
            SearchOp(("test",), {"data": "value1"}),
            ListNamespacesOp(),
            GetOp(("test",), "key3"),
        ]
    )
    assert (item.key, item.value) == ("key1", {"data": "value1"})
    assert put is None
    assert [each.key for each in found] == ["key1"]
    assert names == [("test", "bar"), ("test", "foo")]
    assert missing is None
    assert await store.batch([]) == []


async def test_a_batch_larger_than_a_request(store: Used) -> None:
    ops: list[Op] = [PutOp(("test", str(n % 3)), str(n), {"n": n}) for n in range(1_100)]
    assert await store.batch(ops) == [None] * 1_100
    ops = [GetOp(("test", str(n % 3)), str(n)) for n in range(1_100)]
    found = await store.batch(
        [*ops, SearchOp(("test",), limit=1_000), SearchOp(("test",), limit=1_000, offset=1_000)]
    )
    assert [each.value["n"] for each in found[:1_100]] == list(range(1_100))
    assert [len(each) for each in found[1_100:]] == [1_000, 100]


SOME: Namespaces = [
    ("a", "b", "c"),
    ("a", "b", "d", "e"),
    ("a", "b", "d", "i"),
    ("a", "b", "f"),
    ("a", "c", "f"),
    ("b", "a", "f"),
    ("users", "456", "settings"),
    ("foo",),
    ("foo", "child"),
    ("foobar", "baz"),
    ("user_1",),
    ("userX1",),
    ("a%b", "child"),
    ("axxb",),
    ("a+b", "[x]"),
    ("people", "ada"),
    ("people", "ada\n"),
    ("People", "eve"),
]


async def test_namespaces_are_listed_by_their_ends(store: Used) -> None:
    assert await store.list_namespaces() == []
    await store.put_into(SOME)
    assert await store.list_namespaces() == sorted(SOME)
    wanted: list[tuple[dict[str, Any], Namespaces]] = [
        ({"prefix": ("a", "b")}, SOME[:4]),
        ({"suffix": ("f",)}, SOME[3:6]),
        ({"prefix": ("a",), "suffix": ("f",)}, SOME[3:5]),
        ({"prefix": ("a", "b"), "max_depth": 3}, [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]),
        ({"prefix": ("a", "b"), "offset": 2}, SOME[2:4]),
        ({"prefix": ("a", "*", "f")}, SOME[3:5]),
        ({"suffix": ("*", "settings")}, [("users", "456", "settings")]),
        ({"prefix": ["foo"]}, [("foo",), ("foo", "child")]),
        ({"prefix": ("user_1",)}, [("user_1",)]),
        ({"prefix": ("a%b",)}, [("a%b", "child")]),
        ({"prefix": ("a+b",)}, [("a+b", "[x]")]),
        ({"prefix": ("people", "ada")}, [("people", "ada")]),
        ({"prefix": ("People",)}, [("People", "eve")]),
    ]
    for given, expected in wanted:
        assert await store.list_namespaces(**given) == expected, given


FRUIT = {
    "doc1": {"text": "red apple", "color": "red", "score": 4.5, "tags": ["a", "b"], "in": {"stock": True}},
    "doc2": {"text": "red car", "color": "red", "score": 3.0, "in": {"stock": False}},
    "doc3": {"text": "green apple", "color": "green", "score": 4},
    "doc4": {"text": "blue car", "color": "blue", "score": 3.5, "name": "O'Brien"},
}


@pytest.mark.traced
async def test_filters(store: Used) -> None:
    await store.put_each(FRUIT)
    wanted: list[tuple[dict[str, Any], set[str]]] = [
        ({"color": "red"}, {"doc1", "doc2"}),
        ({"color": "red", "score": {"$gt": 3}}, {"doc1"}),
        ({"score": {"$gt": 3.2}}, {"doc1", "doc3", "doc4"}),
        ({"score": {"$lt": 3.5}}, {"doc2"}),
        ({"score": {"$gt": 3, "$lt": 4}}, {"doc4"}),
        ({"score": {"$lt": 10**100}}, set(FRUIT)),
        ({"color": {"$eq": "blue"}}, {"doc4"}),
        ({"color": {"$ne": "red"}}, {"doc3", "doc4"}),
        ({"color": {"$ne": "red"}, "score": {"$ne": 4}}, {"doc4"}),
        ({"score": 3.5}, {"doc4"}),
        ({"tags": ["a", "b"]}, {"doc1"}),
        ({"tags": ["b", "a"]}, set()),
        ({"tags": {"$ne": ["b", "a"]}}, set(FRUIT)),
        ({"in": {"stock": True}}, {"doc1"}),
        ({"in": {"stock": 1}}, set()),
        ({"nothing": None}, set(FRUIT)),
        ({"score": True}, set()),
        ({"name": "O'Brien"}, {"doc4"}),
        ({"color": "red' OR '1'='1"}, set()),
        ({"color') = 'red' OR '1'='1": "x"}, set()),
    ]
    for given, expected in wanted:
        assert set(await store.keys(filter=given)) == expected, given
        assert set(await store.keys(filter=given, query="apple")) == expected, given
    with pytest.raises(ServiceError, match="near"):
        await store.search(("test",), filter={"score": {"$near": 1}})


@pytest.mark.traced
async def test_a_query_finds_what_an_item_says_now(store: Used) -> None:
    texts = {"doc1": "My dog is called Bruno.", "doc2": "I work as a nurse.", "doc3": "The tax return is due."}
    await store.put_each({key: {"deep": {"text": text}} for key, text in texts.items()})
    before = await store.search(("test",), query="the name of the dog")
    assert before[0].key == "doc1"
    await store.put(("test",), "doc1", {"text": "The violin lessons begin on Monday."})
    after = {each.key: each.score for each in await store.search(("test",), query="the name of the dog")}
    assert after["doc1"] < before[0].score
    assert (await store.keys(query="violin"))[0] == "doc1"
    await store.put(("test",), "doc4", {"text": "the name of the dog"}, index=False)
    found = await store.search(("test",), query="the name of the dog")
    assert (found[-1].key, found[-1].score) == ("doc4", None)
    plain = await store.search(("test",))
    assert len(plain) == 4
    assert all(each.score is None for each in plain)


class Clock:
    """Moves the moment at which items expire, in place of waiting."""

    def __init__(self, services: Services) -> None:
        self._database = services.database

    async def expires(self, key: str) -> Any:
        statement = "SELECT expires_at FROM store_items WHERE key = %(key)s"
        return (await self._database.fetch(DEFAULT_TENANT, statement, {"key": key}, tuple_row))[0][0]

    async def expire(self, key: str) -> None:
        statement = """
            UPDATE store_items SET expires_at = now() - interval '1 minute' WHERE key = %(key)s RETURNING id
        """
        assert await self._database.fetch(DEFAULT_TENANT, statement, {"key": key}, tuple_row)


async def test_what_has_expired_is_nowhere(opened: Opened, services: Services) -> None:
    store, clock = opened(ttl={"default_ttl": 1, "refresh_on_read": True}), Clock(services)
    await store.put_each({key: {"text": key, "n": 1} for key in ("a", "gone", "b", "c")}, ("page",))
    await store.put(("only",), "gone too", {})
    await store.put(("page",), "stays", {"text": "stays", "n": 1}, ttl=None)
    assert await clock.expires("stays") is None
    for key in ("gone", "gone too"):
        await clock.expire(key)
    before = await clock.expires("gone")
    for wanted in ({}, {"filter": {"n": 1}}, {"query": "a"}):
        pages = [await store.keys("page", limit=2, offset=offset, **wanted) for offset in (0, 2)]
        assert sorted(pages[0] + pages[1]) == ["a", "b", "c", "stays"]
    assert await store.get(("page",), "gone") is None
    assert await store.list_namespaces() == [("page",)]
    assert await clock.expires("gone") == before
    await store.put(("page",), "gone", {"n": 2})
    assert (await store.get(("page",), "gone")).value == {"n": 2}
    await services.store.sweep()
    kept = await services.database.fetch(DEFAULT_TENANT, "SELECT key FROM store_items", {}, tuple_row)
    assert {row[0] for row in kept} == {"a", "b", "c", "stays", "gone"}
    assert {each.namespace for each in await store.search((), limit=100)} == {("page",)}


@pytest.mark.parametrize("refreshes", [True, False])
async def test_a_read_lets_the_time_begin_again(opened: Opened, services: Services, refreshes: bool) -> None:
    store, clock = opened(ttl={"default_ttl": 1, "refresh_on_read": refreshes}), Clock(services)
    await store.put(("foo",), "item1", {"foo": "bar"})
    seen = [await clock.expires("item1")]
    uses: tuple[Callable[..., Awaitable[Any]], ...] = (
        lambda **more: store.get(("foo",), "item1", **more),
        lambda **more: store.search(("foo",), query="foo", **more),
        lambda **more: store.search(("foo",), **more),
        lambda **more: store.search(("foo",), filter={"foo": "bar"}, **more),
    )
    for use in uses:
        await use(refresh_ttl=not refreshes)
        other = await clock.expires("item1")
        await use()
        usual = await clock.expires("item1")
        assert [other > seen[-1], usual > other] == [not refreshes, refreshes]
        seen.append(usual)


@pytest.mark.parametrize(
    "namespace", [(), ("the", "thing.about"), ("some", "fun", ""), ("langgraph", "foo"), ("a", 1)], ids=str
)
async def test_namespaces_that_are_not_accepted(store: Used, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        await store.put(namespace, "foo", {"foo": "bar"})
    assert await store.list_namespaces() == []


async def test_calls_at_once_are_carried_out_in_their_order(url: str, services: Services) -> None:
    async with AnamnesisStore(url, user="order") as store:
        await asyncio.gather(*(store.aput(("test",), "key", {"n": n}) for n in range(20)))
        found = await asyncio.gather(*(store.aget(("test",), "key") for _ in range(20)))
        assert [each.value for each in found if each] == [{"n": 19}] * 20
        before = await asyncio.gather(store.asearch(("test",)), store.adelete(("test",), "key"))
        assert [each.value for each in before[0]] == [{"n": 19}]
    logged = await services.database.fetch(DEFAULT_TENANT, "SELECT type FROM memory_operations", {}, tuple_row)
    assert sorted(row[0] for row in logged) == ["store_delete", "store_put"]


async def test_a_call_that_is_refused_fails_alone(store: Used, url: str) -> None:
    async with AnamnesisStore(url, user="alone") as other:
        refused, kept, got = await asyncio.gather(
            other.asearch(("test",), filter={"n": {"$near": 1}}),
            other.aput(("test",), "key", {"n": 1}),
            other.aget(("test",), "key"),
            return_exceptions=True,
        )
        assert isinstance(refused, ServiceError)
        assert kept is None
        assert not isinstance(got, Exception)
        assert (await other.aget(("test",), "key")).value == {"n": 1}  # type: ignore[union-attr]


async def test_a_call_that_is_cancelled_ends_alone(url: str) -> None:
    async with AnamnesisStore(url, user="cancelled") as store:
        await store.aput(("test",), "key", {"n": 1})
        tasks = [asyncio.create_task(store.aget(("test",), "key")) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        first, second, third = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(second, asyncio.CancelledError)
        assert first == third
        assert isinstance(first, Item)


async def test_a_namespace_names_the_user_and_the_space(url: str) -> None:
    async with AnamnesisStore(url, user="other", user_at=1, space_at=2) as store:
        await store.abatch([PutOp(("m", who), "k", {"who": who}) for who in ("ada", "bob")])
        await store.aput(("m", "ada", "work"), "k", {"who": "ada at work"})
        async with (
            AnamnesisStore(url, user="ada") as of_ada,
            AnamnesisStore(url, user="ada", space="work") as at_work,
        ):
            assert [each.value for each in await of_ada.asearch(("m",))] == [{"who": "ada"}]
            assert [each.value for each in await at_work.asearch(("m",))] == [{"who": "ada at work"}]
        for seeking in (store.asearch(("m",), query="ada"), store.alist_namespaces(prefix=("m",))):
            with pytest.raises(ValueError, match="names no user"):
                await seeking
        values = [each.value for each in await store.asearch(("m", "bob"))]
        assert values == [{"who": "bob"}]


async def test_a_store_serves_several_loops(url: str) -> None:
    store = AnamnesisStore(url, user="loops")
    await store.aput(("a",), "k", {"n": 1})

    async def again() -> int:
        found = await store.aget(("a",), "k")
        await store.__aexit__(None, None, None)
        assert found is not None
        return int(found.value["n"])

    assert await asyncio.to_thread(asyncio.run, again()) == 1
    await store.__aexit__(None, None, None)


async def test_the_runtime_names_the_user(url: str) -> None:
    async with AnamnesisStore(url, user=lambda runtime: str(runtime.context["user"])) as store:

        async def note(state: MessagesState, runtime: Runtime[Any]) -> dict[str, Any]:
            await store.aput(("n",), "k", {"of": runtime.context["user"]})
            return {"messages": [str((await store.asearch(("n",)))[0].value)]}

        graph = StateGraph(MessagesState).add_node(note).add_edge(START, "note").compile()
        runs = (graph.ainvoke({"messages": []}, context=cast(Any, {"user": name})) for name in ("ada", "bob"))
        told = [found["messages"][-1].text for found in await asyncio.gather(*runs)]
        assert told == ["{'of': 'ada'}", "{'of': 'bob'}"]


async def test_items_are_indexed_as_they_are_written_and_a_search_ends_with_its_client(
    url: str, services: Services
) -> None:
    lacking = "SELECT count(*) FROM store_items WHERE embedded_by IS NULL"

    async def left() -> int:
        return int((await services.database.fetch(DEFAULT_TENANT, lacking, {}, tuple_row))[0][0])

    async with AnamnesisStore(url, user="ada") as store:
        values = {str(n): {"text": f"Note {n} about ferries.", "n": n} for n in range(300)}
        await store.abatch([PutOp(("n",), key, value) for key, value in values.items()])
        seeking = asyncio.create_task(store.asearch(("n",), query="ferries"))
        await asyncio.wait({seeking}, timeout=0.05)
        seeking.cancel()
        async with asyncio.timeout(60):
            while await left():  # noqa: ASYNC110 — nobody waits for them
                await asyncio.sleep(0.05)
        assert len(await store.asearch(("n",), query="ferries", limit=400)) == 300
        await store.aput(("n",), "7", {"text": "A note about bread.", "n": 7})
        found = await store.asearch(("n",), query="bread", limit=2)
        assert [each.key for each in found][:1] == ["7"]
        await store.adelete(("n",), "7")
        assert "7" not in [each.key for each in await store.asearch(("n",), query="bread", limit=400)]
        wanted = {"n": {"$gt": 3, "$lte": 5}, "text": "Note 5 about ferries."}
        assert [each.key for each in await store.asearch(("n",), filter=wanted)] == ["5"]
        assert [each.key for each in await store.asearch(("n",), query="ferries", filter={"n": {"$lt": 1}})] == [
            "0"
        ]
