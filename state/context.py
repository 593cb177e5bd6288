"""Who a run belongs to: the graph's `context_schema`.

Plain, frozen values that neither a node nor a model can change. Tools read identity from here
(`ToolRuntime.context`); no tool has a user among its arguments.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The identity and the limits of one turn.

    Every field has a default, so that LangGraph Studio can show the context as a form and run the
    graph with none of it filled in; the Studio entry then opens the turn itself.
    """

    tenant_id: str = ""
    """UUID of the tenant. Empty only in Studio, where it means the default tenant."""
    user_id: str = ""
    """UUID of the user's row (not the caller's name for the user)."""
    conversation_id: str = ""
    """UUID of the conversation."""
    expert_id: str = ""
    """UUID of the expert. Memory belongs to the user together with this expert."""
    expert: str = ""
    """The expert's name."""
    space_id: str = ""
    """UUID of the conversation's space; empty = none. What is remembered within a space is known only there, what
    is remembered outside of spaces everywhere."""
    temporary: bool = False
    """Whether nothing of the turn is stored: then no tool changes memory, and no search is logged."""
    user_message_id: str = ""
    """UUID of the message that the turn answers."""
    turn_id: str = ""
    """UUID of the turn. Empty only in Studio, before the turn has been opened."""
    locale: str = ""
    """BCP 47 tag such as `zh-CN`; empty when the caller gave none."""
    timezone: str = "UTC"
    """IANA name, or an offset such as `+08:00`."""
    can_ask: bool = False
    """Whether the turn's reader can be asked to agree to a call."""
    debug: bool = False
    """Whether nodes report what they did in `execution_logs`."""
    said: tuple[str, ...] = ()
    """The user's own words in this conversation, the message last."""
    foreign: tuple[str, ...] = ()
    """What the model has read in this turn that the user did not say: documents, tools' results, pasted texts."""
    remembered: tuple[str, ...] = ()
    """What it has read that was made from such texts earlier: answers, memories, summaries; and what the client's
    application said."""
    not_recalled: tuple[str, ...] = ()
    """Ids of memories and messages that the user excluded: tools do not find them."""
