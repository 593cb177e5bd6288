"""`anamnesis experts`: list, show, add, edit and remove experts."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from uuid import UUID

import typer

from api.cli.shell import (
    WRONG_USE,
    AsJson,
    Limit,
    OfTenant,
    Yes,
    check,
    confirm,
    fail,
    print_fields,
    print_json,
    print_page,
    run,
)
from api.cli.tenants import named
from services.engines import open_database
from services.identity.tenants import Tenants
from services.platform.settings import Settings

if TYPE_CHECKING:
    from services.conversations.experts import Expert, Experts

app = typer.Typer(
    no_args_is_help=True,
    help="List, show, add, edit and remove experts: who answers, by which instructions and model.",
    rich_markup_mode="markdown",
)

_COLUMNS = {
    "name": "name",
    "model": "model",
    "context_strategy": "strategy",
    "context_window": "window",
    "parts_off": "features off",
    "persona": "persona",
}

Done = TypeVar("Done")

OfName = Annotated[str, typer.Argument(metavar="NAME", help="The expert's name.")]
Persona = Annotated[str | None, typer.Option(help="Who the expert is.")]
Model = Annotated[str | None, typer.Option(help="Model that answers; default: the service's.")]
Strategy = Annotated[str | None, typer.Option(help="How a long history is shortened: summary or topics.")]
Window = Annotated[int | None, typer.Option(help="Context window of the model, in tokens.")]
Threshold = Annotated[
    float | None, typer.Option(help="Fraction of the window, 0.1 to 1, at which the history is shortened.")
]
MinMessages = Annotated[int | None, typer.Option(help="Minimum of messages to shorten at once; 10 to 1000.")]
Budget = Annotated[int | None, typer.Option(help="Tokens allowed for a prompt, without the user's message.")]
Reflection = Annotated[
    bool | None, typer.Option("--reflection/--no-reflection", help="Whether it reflects on its conversations.")
]
FeaturesOff = Annotated[
    list[str] | None, typer.Option("--without", help="Feature to switch off for this expert; may be repeated.")
]


@app.command(name="list")
def list_(tenant: OfTenant = "default", limit: Limit = 50, as_json: AsJson = False) -> None:
    """List the experts of a tenant, by name.

    Example: `anamnesis experts list`
    """

    async def read(experts: "Experts", tenant_id: UUID) -> "Sequence[Expert]":
        return await experts.page(tenant_id, after=None, limit=limit + 1)

    print_page(_COLUMNS, _with_experts(tenant, read), limit=limit, as_json=as_json)


@app.command()
def show(name: OfName, tenant: OfTenant = "default", as_json: AsJson = False) -> None:
    """Show an expert with its system prompt.

    Example: `anamnesis experts show default`
    """
    _show(_with_experts(tenant, lambda experts, tenant_id: experts.get(tenant_id, name)), as_json=as_json)


@app.command()
def add(
    name: OfName,
    *,
    system_prompt: Annotated[str, typer.Option(help="Instructions that the model gets first.")],
    persona: Persona = None,
    model: Model = None,
    strategy: Strategy = None,
    window: Window = None,
    threshold: Threshold = None,
    min_messages: MinMessages = None,
    budget: Budget = None,
    reflection: Reflection = None,
    without: FeaturesOff = None,
    tenant: OfTenant = "default",
    as_json: AsJson = False,
) -> None:
    """Add an expert. New conversations use it by naming it.

    Example: `anamnesis experts add film-critic --system-prompt "You are a film critic."`
    """
    from api.expert_schemas import ExpertRequest  # noqa: PLC0415 — help needs none of it
    from services.conversations.experts import NewExpert  # noqa: PLC0415

    given = _given(
        persona=persona, model=model, context_strategy=strategy, context_window=window,
        context_threshold=threshold, min_archive_messages=min_messages, context_budget_tokens=budget,
        reflection=reflection, parts_off=without,
    )  # fmt: skip
    checked = check(ExpertRequest, {"name": name, "system_prompt": system_prompt, **given})
    new = NewExpert(**checked.model_dump())
    _show(_with_experts(tenant, lambda experts, tenant_id: experts.create(tenant_id, new)), as_json=as_json)


@app.command()
def edit(
    name: OfName,
    *,
    system_prompt: Annotated[str | None, typer.Option(help="Instructions that the model gets first.")] = None,
    persona: Persona = None,
    model: Model = None,
    own_model: Annotated[bool, typer.Option("--no-model", help="Answer with the service's own model.")] = False,
    strategy: Strategy = None,
    window: Window = None,
    threshold: Threshold = None,
    min_messages: MinMessages = None,
    budget: Budget = None,
    own_budget: Annotated[bool, typer.Option("--no-budget", help="Use the service's own budget.")] = False,
    reflection: Reflection = None,
    without: FeaturesOff = None,
    with_all: Annotated[bool, typer.Option("--with-all", help="Switch every feature on again.")] = False,
    tenant: OfTenant = "default",
    as_json: AsJson = False,
) -> None:
    """Change the given fields of an expert, for messages sent afterwards.

    Example: `anamnesis experts edit film-critic --model gpt-5-mini --without recall`
    """
    from api.expert_schemas import ExpertChangeRequest  # noqa: PLC0415 — help needs none of it

    given = _given(
        system_prompt=system_prompt, persona=persona, model=model, context_strategy=strategy,
        context_window=window, context_threshold=threshold, min_archive_messages=min_messages,
        context_budget_tokens=budget, reflection=reflection, parts_off=without,
    )  # fmt: skip
    for option, wanted, field, value in (
        ("--no-model", own_model, "model", None),
        ("--no-budget", own_budget, "context_budget_tokens", None),
        ("--with-all", with_all, "parts_off", []),
    ):
        if wanted and field in given:
            fail(f"{option} contradicts another option; give one of them", WRONG_USE)
        if wanted:
            given[field] = value
    if not given:
        fail("nothing to change; see: anamnesis experts edit --help", WRONG_USE)
    change: Any = check(ExpertChangeRequest, given)
    _show(
        _with_experts(tenant, lambda experts, tenant_id: experts.update(tenant_id, name, change)), as_json=as_json
    )


@app.command()
def remove(name: OfName, tenant: OfTenant = "default", yes: Yes = False) -> None:
    """Remove an expert that has neither conversations nor core memory of a user.

    Example: `anamnesis experts remove film-critic --yes`
    """
    confirm(f"Permanently remove the expert {name}?", yes=yes)
    _with_experts(tenant, lambda experts, tenant_id: experts.delete(tenant_id, name))
    typer.echo(f"Removed {name}.")


def _with_experts(tenant: str, work: "Callable[[Experts, UUID], Awaitable[Done]]") -> Done:
    async def done(settings: Settings) -> Done:
        async with _opened(settings, tenant) as (experts, tenant_id):
            return await work(experts, tenant_id)

    return run(done)


@asynccontextmanager
async def _opened(settings: Settings, tenant: str) -> "AsyncIterator[tuple[Experts, UUID]]":
    from services.conversations.experts import Experts  # noqa: PLC0415 — help needs none of it

    async with open_database(settings) as database:
        yield Experts(database), (await named(Tenants(database), tenant)).id


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _show(expert: "Expert", *, as_json: bool) -> None:
    if as_json:
        print_json(expert)
    else:
        print_fields(expert)
