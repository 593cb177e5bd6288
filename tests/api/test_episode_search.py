"""What is told in one conversation is recalled in another before anything is indexed."""

import pytest

from services.bootstrap import Services
from services.engines import Engines
from tests.conftest import free_port
from tests.support.model_server import ModelServer
from tests.support.service_process import ServiceProcess, answer_of, chat

pytestmark = [pytest.mark.anyio, pytest.mark.indexed, pytest.mark.untraced]


@pytest.mark.in_clear
async def test_what_is_told_in_one_conversation_is_in_the_next_prompt_of_another_without_a_worker(
    tmp_path_factory: pytest.TempPathFactory, engines: Engines, services: Services, model_server: ModelServer
) -> None:
    service = ServiceProcess(
        tmp_path_factory.mktemp("service") / "data",
        free_port(),
        database_url=engines.database_url,
        milvus_uri=engines.milvus_uri,
        worker="external",
        memory_recall_budget_ms="2000",
        llm_model="scripted",
        llm_base_url=model_server.base_url,
    )
    service.start()
    try:
        answer_of(chat(service.url, "My cat is called Minka, she is grey.", session_id="s-1"))
        answer_of(chat(service.url, "What is my cat called?", session_id="s-2"))
    finally:
        service.end()
    prompt = model_server.requests[-1].prompt
    assert prompt[-1] == ("user", "What is my cat called?")
    assert any("My cat is called Minka, she is grey." in text for _, text in prompt[:-1])
