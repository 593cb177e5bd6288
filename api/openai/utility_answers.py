"""Answers to requests that are not conversation: by the small model; no user data are read or stored."""

from collections.abc import AsyncGenerator, Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from uuid_utils.compat import uuid7

from api.access import StartsTurns
from api.openai.messages import ClientMessage, text_of
from api.openai.models import expert_of
from api.openai.turn_request import NOBODY, StartedTurn
from api.streams import TurnEvents
from services.bootstrap import Services
from services.llm.chat_models import BACKGROUND_TEMPERATURE
from services.llm.tokens import count_tokens
from services.platform.metrics import UTILITY_REQUESTS
from services.platform.tracing import confidential
from state.conversation import Sampling
from state.events import TurnEvent


async def utility_turn(
    services: Services,
    starter: StartsTurns,
    model: str,
    messages: Sequence[ClientMessage],
    sampling: Sampling,
    recognised_by: str,
) -> tuple[StartedTurn, TurnEvents]:
    """Return the answer in the form of a turn that is stored nowhere.

    Raises:
        ModelNotFound: there is no such model.
        RateLimited: the caller has started too many turns.
        ModelFailed: the small model did not answer.
    """
    caller = await starter.caller_for(starter.caller.user_id or NOBODY)
    await expert_of(services, caller.tenant_id, model)
    UTILITY_REQUESTS.labels(recognised_by).inc()
    confidential.set(True)  # it is about a conversation that may be temporary
    said = [_message(each) for each in messages if text_of(each)]
    if isinstance(said[-1], SystemMessage):  # a chat template wants to hear the user last
        said[-1] = HumanMessage(said[-1].content)
    options = Sampling(**sampling)
    temperature = options.pop("temperature", BACKGROUND_TEMPERATURE)
    answer = await services.models.complete(said, temperature=temperature, sampling=options)
    used = sum(count_tokens(message.text) for message in said)
    usage = {"input_tokens": used, "output_tokens": count_tokens(answer), "cached_tokens": 0}
    asked = StartedTurn(caller.tenant_id, uuid7(), model, stored=False, session=None)
    return asked, _events(answer, usage)


async def _events(answer: str, usage: dict[str, int]) -> AsyncGenerator[list[TurnEvent], None]:
    done = {"answer": answer, "sources": [], "usage": usage}
    yield [TurnEvent(1, "turn", {}), TurnEvent(2, "token", answer), TurnEvent(3, "done", done)]


def _message(message: ClientMessage) -> BaseMessage:
    kinds: dict[str, type[BaseMessage]] = {
        "assistant": AIMessage,
        "system": SystemMessage,
        "developer": SystemMessage,
    }
    return kinds.get(message.role, HumanMessage)(content=text_of(message))
