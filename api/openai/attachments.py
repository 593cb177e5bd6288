"""Fits a client's attachments and system messages into their budgets, and names in a header what was cut."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from api.openai.messages import ClientRequest, cut_to_tokens
from api.openai.models import expert_of
from services.bootstrap import Services
from services.knowledge.attachments import GAP, SHARE_OF_WINDOW
from services.llm.token_estimates import count_tokens
from services.search.queries import Utterance
from services.text.language import Language, language_of
from state.budget import RequestBudget
from state.client_tools import ClientCall, ClientResult, ClientRound

CUT_HEADER = "X-Anamnesis-Cut"
"""Names what was cut, with the characters shown and all: `attached=8312/60000`."""
_LITTLE = 500
"""Number of tokens of attachments that are always allowed, even if the settings allow fewer."""
_BEYOND = "system_messages_beyond_the_limit"
_SHARE_OF_INSTRUCTIONS = _SHARE_OF_RESULTS = 0.5
"""Share of the model's context that system messages may take, and the share that the results of the client's tools
may take at once."""
_RESULT_CUT: dict[Language, str] = {
    "en": "[This result has {of} characters, which do not fit in; above is what is nearest to the question.]",
    "zh": "[该结果有 {of} 个字符，放不下；以上只是与问题最接近的段落。]",
}


@dataclass(frozen=True)
class Fitted:
    """A request after its attachments and system messages were cut to their budgets."""

    request: ClientRequest
    cut: dict[str, int] = field(default_factory=dict)
    """Number of characters that each cut part had before it was cut, as in `TurnInput`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    ignored: Sequence[str] = ()
    """Names of the parts of the request that have no effect."""


async def fitting_results(
    services: Services,
    tenant_id: UUID,
    results: Sequence[ClientResult],
    calls: Sequence[ClientCall],
    *,
    model: str,
    message: str,
) -> tuple[list[ClientResult], str]:
    """Cut the results of the client's tools to their budget, keeping the passages nearest to the message and the
    calls. Return them with the text for the header that names the cuts. Raises `ModelNotFound` if there is no such
    model."""
    texts = [each["content"] for each in results]
    if sum(map(count_tokens, texts)) <= _LITTLE:
        return list(results), ""
    question = "\n".join([message, *(str(value) for call in calls for value in call["arguments"].values())])
    budget = int((await expert_of(services, tenant_id, model)).context_window * _SHARE_OF_RESULTS)
    found = await services.knowledge.attachments.cut(texts, question, (), budget=budget)
    if not found.is_cut:
        return list(results), ""
    fitting: list[ClientResult] = []
    for each, text in zip(results, found.texts, strict=True):
        if GAP not in text:
            fitting.append(each)
            continue
        told = _RESULT_CUT[language_of([question])].format(of=len(each["content"]))
        fitting.append({**each, "content": f"{text}\n{told}", "of": len(each["content"])})
    return fitting, f"results={found.shown}/{found.of}"


async def fitted(
    services: Services, tenant_id: UUID, request: ClientRequest, model: str, limits: RequestBudget
) -> Fitted:
    """Cut what a client added to the user's words so that it fits. Raises `ModelNotFound` if there is no such
    model."""
    settings = services.settings
    shown: dict[str, int] = {}
    cut: dict[str, int] = {}
    instructions = ""
    if settings.openai_system_messages == "append":
        most = settings.openai_system_tokens
        if most is None:
            most = _LITTLE
            if len(request.instructions) > most:
                most = int((await expert_of(services, tenant_id, model)).context_window * _SHARE_OF_INSTRUCTIONS)
        instructions = cut_to_tokens(request.instructions, most)
        if len(instructions) < len(request.instructions):
            shown["instructions"], cut["instructions"] = len(instructions), len(request.instructions)
            instructions = f"{instructions}\n{GAP}"
    attached = request.attached
    if sum(map(count_tokens, attached)) > _LITTLE:
        earlier = [Utterance(each["role"], each["content"]) for each in request.earlier]
        budget = await _budget(services, tenant_id, model, limits)
        found = await services.knowledge.attachments.cut(attached, request.message, earlier, budget=budget)
        attached = found.texts
        if found.is_cut:
            shown["attached"], cut["attached"] = found.shown, found.of
    named = [f"{name}={shown[name]}/{of}" for name, of in cut.items()]
    rounds: list[ClientRound] = []
    for each in request.rounds:
        results, of_results = await fitting_results(
            services, tenant_id, each["results"], each["calls"], model=model, message=request.message
        )
        rounds.append({**each, "results": results})
        named += [of_results] if of_results else []
    fits = replace(request, instructions=instructions, attached=attached, rounds=rounds)
    beyond = bool(request.instructions) and instructions != request.instructions
    return Fitted(fits, cut, {CUT_HEADER: ", ".join(named)} if named else {}, [_BEYOND] if beyond else [])


async def _budget(services: Services, tenant_id: UUID, model: str, limits: RequestBudget) -> int:
    own = services.settings.attached_tokens
    if own is None:
        own = int((await expert_of(services, tenant_id, model)).context_window * SHARE_OF_WINDOW)
    return min(own, limits["tokens"] // 2) if "tokens" in limits else own
