"""Which node comes next. Pure functions of the state."""

from typing import Literal

from langchain_core.messages import AIMessage

from state.conversation import ConversationState


def after_history(
    state: ConversationState,
) -> Literal["no_record", "retrieve", "quick", "generate_kb", "generate_rag"]:
    """Ask no model about days on which nothing was said; search knowledge bases only where it may help."""
    if state.get("told_without_model"):
        return "no_record"
    return "retrieve" if state.get("use_retrieval") else after_retrieve(state)


def after_retrieve(state: ConversationState) -> Literal["quick", "generate_kb", "generate_rag"]:
    """Run tools before the model is asked only when the message itself asks for them."""
    return "quick" if state.get("quick_tools") else generation(state)


def generation(state: ConversationState) -> Literal["generate_kb", "generate_rag"]:
    """Choose `generate_kb` for a knowledge base, whose handler may assemble its prompts."""
    return "generate_kb" if state.get("handler") else "generate_rag"


def after_generate(state: ConversationState) -> Literal["tools", "persist"]:
    """Run the tools that the model called; without any the answer is complete."""
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else "persist"
