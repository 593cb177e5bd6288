"""The graph as a node of another one."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from graph.studio import open_graph
from services.platform.settings import Settings
from tests.support.folders import new_folder

pytestmark = pytest.mark.settings(llm_model=None, llm_base_url=None, llm_api_key=None)


@pytest.fixture
def data_folder() -> Iterator[Path]:
    """A folder for engines of its own."""
    with new_folder() as folder:
        yield Path(folder)


@dataclass
class Context:
    """Of the other graph."""

    user_id: str
    session_id: str


async def test_it_takes_and_gives_messages_with_and_without_a_loop(settings: Settings, data_folder: Path) -> None:
    own = settings.model_copy(update={"data_dir": data_folder})
    async with open_graph(own) as graph:
        outer = StateGraph(MessagesState, context_schema=Context).add_node("anamnesis", graph)
        chat = outer.add_edge(START, "anamnesis").compile()

        async def say(text: str, context: Context) -> Any:
            return (await chat.ainvoke({"messages": [HumanMessage(text)]}, context=context))["messages"]

        first = await say("My dog is called Bruno.", Context("ada", "s-1"))
        assert [type(each) for each in first] == [HumanMessage, AIMessage]
        assert "Bruno" in (await say("What is my dog called?", Context("ada", "s-2")))[-1].text
        assert "Bruno" not in (await say("What is my dog called?", Context("bob", "s-1")))[-1].text

        asked: Any = {"messages": [HumanMessage("What is my dog called?")]}
        said = await asyncio.to_thread(chat.invoke, asked, context=Context("ada", "s-3"))
        assert "Bruno" in said["messages"][-1].text
        with pytest.raises(TypeError, match="ainvoke"):
            graph.invoke(asked)
