import pytest

from services.bootstrap import Services
from services.errors import Conflict, InvalidInput, NotFound
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.knowledge.bases import NewBase
from tests.support.knowledge import a_base, put
from tests.support.turns import exchange, messages_of, new_turn


async def test_a_handler_that_there_is_not_is_refused_and_the_ones_there_are_named(services: Services) -> None:
    with pytest.raises(InvalidInput, match="there is none named 'poet'; there is cited"):
        await services.knowledge.bases.create(DEFAULT_TENANT, NewBase("b", "x", handler="poet"))
    await a_base(services)
    with pytest.raises(InvalidInput, match="poet"):
        await services.knowledge.bases.update(DEFAULT_TENANT, "handbook", {"handler": "poet"})
    changed = await services.knowledge.bases.update(DEFAULT_TENANT, "handbook", {"handler": "cited"})
    assert changed.handler == "cited"


async def test_a_base_that_a_message_names_and_that_is_not_there_is_refused(services: Services) -> None:
    await a_base(services)
    with pytest.raises(InvalidInput, match="there is no knowledge base with the prefix 'cellar'"):
        await services.turns.open(new_turn("Hi", requested_kb_prefix="cellar"))
    with pytest.raises(InvalidInput, match="there is no expert named 'nobody'"):
        await services.turns.open(new_turn("Hi", requested_kb_prefix="handbook", expert="nobody"))
    turn = await exchange(services.turns, "Hi", "Hello", requested_kb_prefix="handbook")
    with pytest.raises(InvalidInput, match="cellar"):
        await services.turns.open(new_turn("Again", requested_kb_prefix="cellar"))
    shown = await messages_of(services, turn.conversation_id)
    assert [message.content for message in shown] == ["Hi", "Hello"]


async def test_a_prefix_is_taken_once_in_a_tenant_and_free_in_another(services: Services) -> None:
    await a_base(services)
    with pytest.raises(Conflict):
        await a_base(services)
    other = await Tenants(services.database).create("other")
    assert (await a_base(services, tenant_id=other.id)).prefix == "handbook"


async def test_what_is_not_there_or_anothers_is_not_found(services: Services) -> None:
    bases, documents = services.knowledge.bases, services.knowledge.documents
    other = await Tenants(services.database).create("other")
    base = await a_base(services)
    taken = await put(services, base, "a.md", "x")
    for doing in (
        bases.get(other.id, "handbook"),
        bases.update(other.id, "handbook", {"description": "x"}),
        bases.delete(other.id, "handbook"),
        documents.base_id(other.id, "handbook"),
        documents.ingest(other.id, base.id, "b.md", b"x"),
        documents.delete(other.id, base.id, taken.document.id),
    ):
        with pytest.raises(NotFound):
            await doing
    assert (await bases.get(DEFAULT_TENANT, "handbook")).documents == 1


async def test_a_prefix_that_is_none_is_refused(services: Services) -> None:
    for prefix in ("", "A", "a" * 64, "手册"):
        with pytest.raises(InvalidInput, match="is not 1 to 63"):
            await services.knowledge.bases.create(DEFAULT_TENANT, NewBase(prefix, "x"))
