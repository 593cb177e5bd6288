"""`anamnesis chat`: talk to the running service in the terminal."""

import getpass
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from anamnesis_client import Anamnesis, ClientError
from api.cli import chat_views
from api.cli.chat_views import show_answer
from api.cli.chat_why import show_why
from api.cli.memory import forget_text
from api.cli.service import AtUrl, Refused, WithKey, connected, told
from api.cli.shell import WRONG_USE, InSpace, fail
from services.validation import RULE, is_id
from state.budget import WRITTEN, RequestBudget, parse_budget

_SHOWN_ON_RETURN = 6
_MOST_EARLIER = 200
_COMMANDS = {
    "/new [NAME]": "start a new conversation",
    "/list": "list your conversations",
    "/open NAME": "go on with another conversation",
    "/memory": "show what is remembered of you",
    "/forget TEXT": "forget what the text describes",
    "/why": "show what the last answer was based on",
    "/model": "show which expert and model answer",
    "/help": "show these commands",
    "/quit": "leave; so does Ctrl-D",
}

console = Console()


@dataclass
class _Talk:
    """The state of the conversation at the terminal."""

    service: Anamnesis
    user: str
    session: str
    expert: str | None
    """Expert of the current or next conversation; None = the default one."""
    space: str | None = None
    """Space of the current or next conversation; None = none."""
    temporary: bool = False
    """Whether the conversation is temporary."""
    budget: RequestBudget = field(default_factory=RequestBudget)
    """What each answer may use."""
    turn_id: str | None = None
    """Turn of the last answer."""
    said: list[dict[str, str]] = field(default_factory=list)
    """Messages so far, of a temporary conversation."""


def chat(
    session: Annotated[str, typer.Option(help="Name of the conversation.")] = "terminal",
    resume: Annotated[bool, typer.Option("--resume", help="Continue your newest conversation.")] = False,
    user: Annotated[str | None, typer.Option(help="Who you are; your login name by default.")] = None,
    expert: Annotated[str | None, typer.Option(help="Expert of a new conversation.")] = None,
    space: InSpace = None,
    temporary: Annotated[bool, typer.Option("--temporary", help="Keep nothing of the conversation.")] = False,
    budget: Annotated[str | None, typer.Option(help=f"What each answer may use: {WRITTEN}.")] = None,
    url: AtUrl = None,
    key: WithKey = None,
) -> None:
    """Talk to the running service. Ctrl-C stops an answer; /help lists commands, Ctrl-D or /quit ends.

    Example: `anamnesis chat --session holiday`
    """
    name = user or getpass.getuser()
    for option, value in (("--user", name), ("--session", session), ("--expert", expert)):
        if value is not None and not is_id(value):
            fail(f"{option} {RULE}", WRONG_USE)
    try:
        limits = parse_budget(budget) if budget else RequestBudget()
    except ValueError as error:
        fail(f"--budget: {error}", WRONG_USE)
    with connected(url, key) as service:
        talk = _Talk(service, name, session, expert, space, temporary, limits)
        if resume and (newest := chat_views.conversations(service, name, limit=1)):
            talk.session = newest[0]["session_id"]
        _enter(talk)
        _read_lines(talk)


def _enter(talk: _Talk) -> None:
    """Show the last messages of a conversation, or that it is new.

    Raises:
        Refused: it belongs to an expert other than the requested one, or there is no such expert.
    """
    if talk.temporary:
        console.print("[dim]Temporary conversation: nothing of it is kept. /help lists commands.[/]")
        return
    found = chat_views.conversation(talk.service, talk.user, talk.session)
    if found is None:
        if talk.expert is not None:
            chat_views.expert_of(talk.service, talk.expert)
        with_expert = f" with {escape(talk.expert)}" if talk.expert else ""
        in_space = f" in the space “{escape(talk.space)}”" if talk.space else ""
        console.print(
            f"[dim]New conversation “{escape(talk.session)}”{with_expert}{in_space}. /help lists commands.[/]"
        )
        return
    if talk.expert is not None and found["expert"] != talk.expert:
        raise Refused(
            f"The conversation “{talk.session}” belongs to the expert {found['expert']}. "
            f"To talk to {talk.expert}, name another conversation with --session.",
            wrong_use=True,
        )
    if talk.space is not None and found["space"] != talk.space:
        belongs = f"to the space {found['space']}" if found["space"] else "to no space"
        raise Refused(
            f"The conversation “{talk.session}” belongs {belongs}. "
            f"To talk in {talk.space}, name another conversation with --session.",
            wrong_use=True,
        )
    talk.expert, talk.space = found["expert"], found["space"]
    console.print(f"[dim]Conversation “{escape(talk.session)}” with {escape(found['expert'])}, continued.[/]")
    for message in chat_views.last_messages(talk.service, found["id"], _SHOWN_ON_RETURN):
        name = "you " if message["role"] == "user" else "anam"
        unfinished = "" if message["completed"] else " [dim](incomplete)[/]"
        console.print(f"[dim]{name} {escape(message['content'])}[/]{unfinished}")


def _read_lines(talk: _Talk) -> None:
    while True:
        try:
            line = console.input("[bold cyan]you[/]  ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
        if line in {"/quit", "/exit"}:
            return
        if line.startswith("//"):
            _send(talk, line[1:])
        elif line.startswith("/"):
            command, _, rest = line.partition(" ")
            _obey(talk, command, rest.strip())
        elif line:
            _send(talk, line)


def _send(talk: _Talk, message: str) -> None:
    options: dict[str, Any] = {
        "user": talk.user,
        "session": talk.session,
        "expert": talk.expert,
        "space": talk.space,
        "budget": talk.budget or None,
    }
    if talk.temporary:
        options |= {"temporary": True, "earlier": talk.said[-_MOST_EARLIER:]}
    shown = show_answer(console, talk.service, message, options)
    if shown is None:
        return
    talk.turn_id = shown.turn_id
    if talk.temporary and shown.text.strip():
        talk.said += [{"role": "user", "content": message}, {"role": "assistant", "content": shown.text}]


def _obey(talk: _Talk, command: str, rest: str) -> None:
    """Carry out a command; neither it nor its output reaches the model or memory."""
    try:
        match command:
            case "/new":
                _go_to(
                    talk,
                    rest or chat_views.unused_name(talk.service, talk.user),
                    expert=talk.expert,
                    space=talk.space,
                )
            case "/open" if rest:
                _go_to(talk, rest, expert=None, space=None)
            case "/list":
                chat_views.show_conversations(
                    console, chat_views.conversations(talk.service, talk.user, limit=20), talk.session
                )
            case "/memory":
                chat_views.show_memory(console, talk.service, talk.user, talk.expert or "default", talk.space)
            case "/forget" if rest:
                change = forget_text(talk.service, talk.user, talk.expert or "default", talk.space, rest)
                console.print(f"[dim]{escape(change['summary'])}[/]")
            case "/why":
                _show_why(talk)
            case "/model":
                chat_views.show_model(console, talk.service, talk.expert or "default")
            case "/help":
                _show_help()
            case "/open" | "/forget":
                console.print(f"[yellow]{command} needs a text; see /help[/]")
            case _:
                console.print(f"[yellow]There is no command {escape(command)}; nothing was sent.[/]")
                _show_help()
    except Refused as error:
        console.print(f"[red]{escape(error.message)}[/]")
    except ClientError as error:
        console.print(f"[red]{escape(told(error))}[/]")


def _go_to(talk: _Talk, session: str, *, expert: str | None, space: str | None) -> None:
    if not is_id(session):
        raise Refused(f"The name of a conversation {RULE}.")
    there = _Talk(talk.service, talk.user, session, expert, space, budget=talk.budget)
    _enter(there)
    talk.session, talk.expert, talk.space, talk.turn_id = there.session, there.expert, there.space, None
    talk.temporary, talk.said = False, []


def _show_why(talk: _Talk) -> None:
    if talk.turn_id is None:
        console.print("[dim]There is no answer yet; ask something first.[/]")
        return
    show_why(console, talk.service.request("GET", "turns", talk.turn_id, "why"))


def _show_help() -> None:
    for command, what in _COMMANDS.items():
        console.print(f"  [bold]{escape(command):<14}[/] {what}")
    console.print("[dim]  A message that begins with a slash is sent with two: //home is a folder.[/]")
