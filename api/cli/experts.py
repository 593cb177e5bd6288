"""`anamnesis experts`: list, show, add, edit and remove experts."""

from typing import Annotated, Any

import typer

from anamnesis_client import Anamnesis
from api.cli.service import first_items, over_http
from api.cli.shell import WRONG_USE, AsJson, Limit, Yes, command_group, confirm, fail, given, print_one, print_page

app = command_group("List, show, add, edit and remove experts: who answers, by which instructions and model.")

_COLUMNS = {
    "name": "name",
    "model": "model",
    "context_strategy": "strategy",
    "context_window": "window",
    "parts_off": "features off",
    "persona": "persona",
}

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
@over_http
def list_(service: Anamnesis, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List experts, by name.

    Example: `anamnesis experts list`
    """
    print_page(_COLUMNS, first_items(service, limit, "experts"), limit=limit, as_json=as_json)


@app.command()
@over_http
def show(service: Anamnesis, name: OfName, as_json: AsJson = False) -> None:
    """Show an expert with its system prompt.

    Example: `anamnesis experts show default`
    """
    print_one(service.request("GET", "experts", name), as_json=as_json)


@app.command()
@over_http
def add(
    service: Anamnesis,
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
    as_json: AsJson = False,
) -> None:
    """Add an expert. New conversations use it by naming it.

    Example: `anamnesis experts add film-critic --system-prompt "You are a film critic."`
    """
    new = given(
        name=name, system_prompt=system_prompt, persona=persona, model=model, context_strategy=strategy,
        context_window=window, context_threshold=threshold, min_archive_messages=min_messages,
        context_budget_tokens=budget, reflection=reflection, parts_off=without,
    )  # fmt: skip
    print_one(service.request("POST", "experts", json=new), as_json=as_json)


@app.command()
@over_http
def edit(
    service: Anamnesis,
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
    as_json: AsJson = False,
) -> None:
    """Change the given fields of an expert, for messages sent afterwards.

    Example: `anamnesis experts edit film-critic --model gpt-5-mini --without recall`
    """
    change: dict[str, Any] = given(
        system_prompt=system_prompt, persona=persona, model=model, context_strategy=strategy,
        context_window=window, context_threshold=threshold, min_archive_messages=min_messages,
        context_budget_tokens=budget, reflection=reflection, parts_off=without,
    )  # fmt: skip
    for option, wanted, field, value in (
        ("--no-model", own_model, "model", None),
        ("--no-budget", own_budget, "context_budget_tokens", None),
        ("--with-all", with_all, "parts_off", []),
    ):
        if wanted and field in change:
            fail(f"{option} contradicts another option; give one of them", WRONG_USE)
        if wanted:
            change[field] = value
    if not change:
        fail("nothing to change; see: anamnesis experts edit --help", WRONG_USE)
    print_one(service.request("PATCH", "experts", name, json=change), as_json=as_json)


@app.command()
@over_http
def remove(service: Anamnesis, name: OfName, yes: Yes = False) -> None:
    """Remove an expert that has neither conversations nor core memory of a user.

    Example: `anamnesis experts remove film-critic --yes`
    """
    confirm(f"Permanently remove the expert {name}?", yes=yes)
    service.request("DELETE", "experts", name)
    typer.echo(f"Removed {name}.")
