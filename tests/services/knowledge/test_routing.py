import asyncio
from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest
from langchain_core.embeddings import Embeddings

from services.bootstrap import Services
from services.errors import DatabaseUnavailable, Unavailable
from services.knowledge.base import BaseProfile
from services.knowledge.evidence import Evidence
from services.knowledge.routing import KnowledgeRouting
from services.llm.embeddings import Embedder
from services.search.embedding_quality import EmbeddingQuality
from services.text.language import Language
from services.text.lexical import LexicalEmbeddings
from services.text.tokenizer import terms
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio

COFFEE = BaseProfile(
    "coffee",
    "Manual of the Brevo coffee machine",
    keywords=("Brevo", "descale"),
    questions=("How do I descale the machine?", "Which beans fit?"),
)
GARDEN = BaseProfile(
    "garden", "植物园参观指南", keywords=("门票", "植物园"), questions=("几点闭园？",), handler="cited"
)
ANN, BOB = uuid4(), uuid4()


class Bases:
    """Profiles by tenant, and how often they were read."""

    def __init__(self) -> None:
        self.by_tenant: dict[UUID, list[BaseProfile]] = {ANN: [COFFEE, GARDEN]}
        self.read = 0
        self.away = False

    async def load(self, tenant_id: UUID) -> Sequence[BaseProfile]:
        self.read += 1
        if self.away:
            raise DatabaseUnavailable
        return self.by_tenant.get(tenant_id, [])


async def _passages(tenant_id: UUID, message: str, vector: object) -> list[Evidence]:
    if "milk" in message:
        raise Unavailable("Milvus does not answer.")
    texts = {"grounds": "The grounds fall into the drawer: empty it.", "beans": "Roasted beans of any kind fit."}
    return [Evidence("coffee", tuple(terms(text))) for word, text in texts.items() if word in message]


class Counting(Embeddings):
    """Lexical embeddings that count what they are asked for, and can be away or slow."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.away = False
        self.wait_s = 0.0
        self._lexical = LexicalEmbeddings(64)

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.away:
            raise OSError("away")
        self.texts += texts
        return self._lexical.embed_documents(texts)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(self.wait_s)
        return self.embed_documents(texts)


async def _quality() -> dict[Language, EmbeddingQuality]:
    return {language: EmbeddingQuality(0.9, 0.9, 0.3) for language in ("en", "zh")}


@pytest.fixture
def bases() -> Bases:
    return Bases()


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def routing(bases: Bases, counting: Counting) -> KnowledgeRouting:
    return KnowledgeRouting(
        bases.load, _passages, Embedder(counting, model="m", dimension=64), _quality, patience_s=20
    )


async def test_without_knowledge_bases_nothing_is_read(routing: KnowledgeRouting, bases: Bases) -> None:
    found = await routing.by_rules(ANN, "", "How do I descale the Brevo?")
    assert (found.decision["worker_name"], found.undecided, bases.read) == ("general", False, 0)


async def test_profiles_are_read_once_until_they_change(routing: KnowledgeRouting, bases: Bases) -> None:
    for version, reads in (("1", 1), ("1", 1), ("2", 2), (None, 3), (None, 4)):
        found = await routing.by_rules(ANN, version, "植物园门票多少钱？")
        assert found.decision["kb_prefix"] == "garden"
        assert bases.read == reads
    bases.by_tenant[ANN] = [COFFEE]
    assert (await routing.by_rules(ANN, "3", "植物园门票多少钱？")).decision["kb_prefix"] is None


async def test_another_tenant_has_bases_of_its_own(routing: KnowledgeRouting) -> None:
    assert (await routing.by_rules(ANN, "1", "植物园门票多少钱？")).base is GARDEN
    found = await routing.by_rules(BOB, "1", "植物园门票多少钱？")
    assert found.base is None
    assert (await routing.by_similarity(BOB, "1", "植物园门票多少钱？", None)).decision["kb_prefix"] is None


async def test_what_the_caller_names_outweighs_the_words(routing: KnowledgeRouting) -> None:
    found = await routing.by_rules(ANN, "1", "How do I descale the Brevo?", requested="garden")
    assert found.decision["method"] == "explicit"
    assert found.decision["worker_name"] == "cited"  # its handler
    gone = await routing.by_rules(ANN, "1", "Hi", requested="removed")
    assert (gone.decision["kb_prefix"], gone.base) == ("removed", None)


async def test_courtesies_and_what_is_answered_otherwise_belong_nowhere(routing: KnowledgeRouting) -> None:
    assert not (await routing.by_rules(ANN, "1", "Thanks a lot!")).undecided
    assert not (await routing.by_rules(ANN, "1", "descale Brevo?", open_question=False)).undecided


async def test_similarity_takes_the_embedding_that_recall_made(
    routing: KnowledgeRouting, counting: Counting
) -> None:
    message = "Which beans do I need for the machine?"
    assert (await routing.by_rules(ANN, "1", message)).undecided
    vector = LexicalEmbeddings(64).embed_query(message)
    found = await routing.by_similarity(ANN, "1", message, vector)
    assert (found.decision["kb_prefix"], found.decision["method"]) == ("coffee", "similarity")
    assert message not in counting.texts
    profiles = len(counting.texts)
    assert (await routing.by_similarity(ANN, "1", message, None)).decision["kb_prefix"] == "coffee"
    assert counting.texts[profiles:] == [message]


async def test_what_is_close_to_none_goes_to_none(routing: KnowledgeRouting) -> None:
    found = await routing.by_similarity(ANN, "1", "Write a poem about the sea", None)
    assert found.decision["kb_prefix"] is None
    assert found.decision["method"] == "default"


async def test_a_passage_that_speaks_of_what_is_asked_decides(routing: KnowledgeRouting) -> None:
    found = await routing.by_similarity(ANN, "1", "Where do the grounds go?", None)
    assert (found.decision["kb_prefix"], found.decision["method"]) == ("coffee", "similarity")


async def test_an_embedding_that_is_away_or_late_leaves_words_and_documents(
    routing: KnowledgeRouting, bases: Bases, counting: Counting
) -> None:
    counting.away = True
    found = await routing.by_similarity(ANN, "1", "Where do the grounds go?", None)
    assert (found.decision["kb_prefix"], found.degraded) == ("coffee", ("embedding",))
    counting.away, counting.wait_s = False, 5.0
    embedder = Embedder(counting, model="m", dimension=64)
    hurried = KnowledgeRouting(bases.load, _passages, embedder, _quality, patience_s=0.1)
    found = await hurried.by_similarity(ANN, "2", "Which cups are nicest?", None)
    assert (found.decision["kb_prefix"], found.degraded) == (None, ("embedding",))
    await routing.close()
    await hurried.close()


async def test_documents_that_cannot_be_searched_leave_the_rest(routing: KnowledgeRouting) -> None:
    found = await routing.by_similarity(ANN, "1", "Which beans do I need for milk in the machine?", None)
    assert (found.decision["kb_prefix"], found.degraded) == ("coffee", ("milvus",))


async def test_bases_that_cannot_be_read_leave_the_turn_without(routing: KnowledgeRouting, bases: Bases) -> None:
    bases.away = True
    for found in (
        await routing.by_rules(ANN, "1", "descale?"),
        await routing.by_similarity(ANN, "1", "descale?", None),
    ):
        assert (found.decision["kb_prefix"], found.degraded) == (None, ("knowledge",))
    named = await routing.by_rules(ANN, "1", "descale?", requested="coffee")
    assert (named.decision["kb_prefix"], named.degraded) == ("coffee", ("knowledge",))
    bases.away = False
    assert (await routing.by_rules(ANN, "1", "How to descale the Brevo?")).decision["kb_prefix"] == "coffee"


async def test_a_message_that_goes_on_belongs_where_the_one_before_does(routing: KnowledgeRouting) -> None:
    found = await routing.by_similarity(ANN, "1", "And after that?", None, before="How do I descale the Brevo?")
    assert (found.decision["kb_prefix"], found.decision["reason"]) == (
        "coffee",
        "it goes on from the message before",
    )
    other = await routing.by_rules(ANN, "1", "那植物园门票呢？")
    assert other.decision["kb_prefix"] == "garden"
    nowhere = await routing.by_similarity(ANN, "1", "And after that?", None, before="Tell me a joke")
    assert nowhere.decision["kb_prefix"] is None


@pytest.mark.parametrize(
    ("replies", "prefix", "degraded"),
    [
        (['{"prefix": "coffee", "confidence": 0.9}'], "coffee", ()),
        (['{"prefix": null, "confidence": 0.9}'], None, ()),
        (['{"prefix": "coffee", "confidence": 0.4}'], None, ()),
        (["no idea", '{"prefix": "coffee", "confidence": 1}'], "coffee", ()),
        (['{"prefix": "kitchen", "confidence": 1}', "?"], None, ("routing_model",)),
    ],
)
async def test_the_small_model_is_asked_last_and_checked(
    services: Services,
    model_server: ModelServer,
    bases: Bases,
    counting: Counting,
    replies: list[str],
    prefix: str | None,
    degraded: tuple[str, ...],
) -> None:
    routing = KnowledgeRouting(
        bases.load,
        _passages,
        Embedder(counting, model="m", dimension=64),
        _quality,
        services.models,
        patience_s=20,
    )
    model_server.script(*(Reply([reply]) for reply in replies))
    found = await routing.by_similarity(ANN, "1", "It hums strangely since Monday", None)
    assert found.decision["kb_prefix"] == prefix
    assert found.degraded == degraded
    assert found.decision["method"] == ("model" if prefix else "default")
    assert "It hums strangely" in model_server.requests[0].prompt[-1][1]
    assert "- coffee: Manual of the Brevo" in model_server.requests[0].prompt[0][1]


async def test_the_small_model_that_is_away_decides_nothing(
    services: Services, model_server: ModelServer, bases: Bases, counting: Counting
) -> None:
    routing = KnowledgeRouting(
        bases.load,
        _passages,
        Embedder(counting, model="m", dimension=64),
        _quality,
        services.models,
        patience_s=20,
    )
    model_server.script(*(Reply(status=500) for _ in range(12)))
    found = await routing.by_similarity(ANN, "1", "It hums strangely since Monday", None)
    assert (found.decision["kb_prefix"], found.degraded) == (None, ("routing_model",))
