"""Background work: which model is asked, how often, and what its failures cost."""

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from services.errors import ModelFailed, Unavailable
from services.llm.chat_models import ChatModels
from tests.services.llm.clients import Make
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.untraced

ASK = [SystemMessage("Be brief."), HumanMessage("Summarise.")]


@pytest.fixture
def models(make: Make, model_server: ModelServer, api: str) -> ChatModels:
    return make(model_server.base_url, api, small_llm_model="small")


async def test_the_small_model_is_asked(models: ChatModels, model_server: ModelServer) -> None:
    model_server.script(Reply(["Short ", "text."]))
    assert await models.complete(ASK) == "Short text."
    [request] = model_server.requests
    assert (request.body["model"], request.body["temperature"]) == ("small", 0.3)
    assert [text for _, text in request.prompt] == ["Be brief.", "Summarise."]
    assert not request.body.get("tools")


async def test_its_failures_cost_turns_nothing(make: Make, model_server: ModelServer, api: str) -> None:
    models = make(model_server.base_url, api, small_llm_model="first")
    model_server.script(*[Reply(status=500)] * 5)
    for _ in range(5):
        with pytest.raises(ModelFailed):
            await models.complete(ASK)
    with pytest.raises(Unavailable):
        await models.complete(ASK)
    assert len(model_server.requests) == 5
    assert (await models.answer(ASK, on_text=lambda _: None)).text
    assert model_server.requests[-1].body["model"] == "first"


async def test_turns_failures_cost_it_nothing(make: Make, model_server: ModelServer, api: str) -> None:
    models = make(model_server.base_url, api, small_llm_model="first")
    model_server.script(*[Reply(silent=True, ending="abort")] * 15)
    for _ in range(5):
        with pytest.raises(ModelFailed):
            await models.answer(ASK, on_text=lambda _: None)
    asked = len(model_server.requests)
    with pytest.raises(ModelFailed):
        await models.answer(ASK, on_text=lambda _: None)
    assert len(model_server.requests) == asked
    assert await models.complete(ASK)
