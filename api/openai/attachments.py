"""Fits a client's attachments and system messages into their budgets, and names in a header what was cut."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from api.openai.messages import ClientRequest, cut_to_tokens
from api.openai.models import expert_of
from services.bootstrap import Services
from services.knowledge.attachments import GAP, SHARE_OF_WINDOW, cut_to_budget
from services.llm.token_estimates import count_tokens
from services.search.queries import Utterance
from state.budget import RequestBudget

CUT_HEADER = "X-Anamnesis-Cut"
"""Names what was cut, with the characters shown and all: `attached=8312/60000`."""
_LITTLE = 500
"""Tokens of attachments that fit whatever the settings say."""


@dataclass(frozen=True)
class Fitted:
    """A request whose attachments and instructions fit their budgets."""

    request: ClientRequest
    cut: dict[str, int] = field(default_factory=dict)
    """Characters of the whole of what was cut, as in `TurnInput`."""
    headers: Mapping[str, str] = field(default_factory=dict)


async def fitted(
    services: Services, tenant_id: UUID, request: ClientRequest, model: str, limits: RequestBudget
) -> Fitted:
    """Cut what a client adds to the user's words to what fits.

    Raises:
        ModelNotFound: there is no such model.
    """
    settings = services.settings
    shown: dict[str, int] = {}
    cut: dict[str, int] = {}
    instructions = ""
    if settings.openai_system_messages == "append":
        instructions = cut_to_tokens(request.instructions, settings.openai_system_tokens)
        if len(instructions) < len(request.instructions):
            shown["instructions"], cut["instructions"] = len(instructions), len(request.instructions)
            instructions = f"{instructions}\n{GAP}"
    attached = request.attached
    if sum(map(count_tokens, attached)) > _LITTLE:
        earlier = [Utterance(each["role"], each["content"]) for each in request.earlier]
        budget = await _budget(services, tenant_id, model, limits)
        found = await cut_to_budget(attached, request.message, earlier, budget=budget, embedder=services.embedder)
        attached = found.texts
        if found.is_cut:
            shown["attached"], cut["attached"] = found.shown, found.of
    header = ", ".join(f"{name}={shown[name]}/{of}" for name, of in cut.items())
    fits = replace(request, instructions=instructions, attached=attached)
    return Fitted(fits, cut, {CUT_HEADER: header} if cut else {})


async def _budget(services: Services, tenant_id: UUID, model: str, limits: RequestBudget) -> int:
    own = services.settings.attached_tokens
    if own is None:
        own = int((await expert_of(services, tenant_id, model)).context_window * SHARE_OF_WINDOW)
    return min(own, limits["tokens"] // 2) if "tokens" in limits else own
