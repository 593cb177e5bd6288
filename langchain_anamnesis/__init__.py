"""Anamnesis for LangChain and LangGraph: a store, memory for agents, a retriever and tools.

    from langchain_anamnesis import AnamnesisStore

    with AnamnesisStore("http://127.0.0.1:8000", user="me") as store:
        store.put(("notes",), "pet", {"text": "My dog is called Bruno."})

`AnamnesisMemory`, for `create_agent`, needs the package `langchain` besides.
"""

from typing import TYPE_CHECKING, Any

from langchain_anamnesis.retriever import AnamnesisRetriever
from langchain_anamnesis.store import AnamnesisStore
from langchain_anamnesis.tools import memory_tools

if TYPE_CHECKING:
    from langchain_anamnesis.memory import AnamnesisMemory

__all__ = ["AnamnesisMemory", "AnamnesisRetriever", "AnamnesisStore", "memory_tools"]


def __getattr__(name: str) -> Any:
    if name == "AnamnesisMemory":  # the others do without the package langchain
        from langchain_anamnesis.memory import AnamnesisMemory  # noqa: PLC0415

        return AnamnesisMemory
    raise AttributeError(name)
