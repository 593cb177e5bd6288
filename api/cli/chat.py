"""`anamnesis chat`: talk to the running service in the terminal."""

import getpass
from collections import deque
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from anamnesis_client import Anamnesis, ClientError, ServiceError
from api.cli.chat_answer import show_answer
from api.cli.service import AtUrl, WithKey, connected, told
from api.cli.shell import WRONG_USE, InSpace, fail
from services.errors import InvalidInput
from services.validation import RULE, is_id
from state.budget import WRITTEN, RequestBudget, parse_budget

_SHOWN_ON_RETURN = 6
_MOST_EARLIER = 200
_COMMANDS = {
    "/new [NAME]": "start a new conversation, or go on with the one of that name",
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
    """Limits of each answer."""
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
        if resume and (newest := _conversation(service, user_id=name)):
            talk.session = newest["session_id"]
        _enter(talk)
        _read_lines(talk)


def _enter(talk: _Talk) -> None:
    """Show the last messages of a conversation, or that it is new. Raises `InvalidInput` if it belongs to an
    expert or a space other than the requested one, or there is no such expert."""
    if talk.temporary:
        console.print("[dim]Temporary conversation: nothing of it is kept. /help lists commands.[/]")
        return
    found = _conversation(talk.service, user_id=talk.user, session_id=talk.session)
    if found is None:
        if talk.expert is not None:
            _require_expert(talk.service, talk.expert)
        with_expert = f" with {escape(talk.expert)}" if talk.expert else ""
        in_space = f" in the space “{escape(talk.space)}”" if talk.space else ""
        console.print(
            f"[dim]New conversation “{escape(talk.session)}”{with_expert}{in_space}. /help lists commands.[/]"
        )
        return
    for name, wanted in (("expert", talk.expert), ("space", talk.space)):
        if wanted is not None and found[name] != wanted:
            belongs = f"to the {name} {found[name]}" if found[name] else f"to no {name}"
            raise InvalidInput(
                f"--{name}",
                f"the conversation “{talk.session}” belongs {belongs}; name another one with --session",
            )
    talk.expert, talk.space = found["expert"], found["space"]
    console.print(f"[dim]Conversation “{escape(talk.session)}” with {escape(found['expert'])}, continued.[/]")
    for message in deque(talk.service.items("conversations", found["id"], "messages"), _SHOWN_ON_RETURN):
        name = "you " if message["role"] == "user" else "anam"
        unfinished = "" if message["completed"] else " [dim](incomplete)[/]"
        console.print(f"[dim]{name} {escape(message['content'])}[/]{unfinished}")


def _conversation(service: Anamnesis, **whose: str) -> dict[str, Any] | None:
    """Return the newest conversation of the user, or the one of a name."""
    return next(service.items("conversations", params=whose), None)


def _require_expert(service: Anamnesis, name: str) -> None:
    try:
        service.request("GET", "experts", name)
    except ServiceError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            raise InvalidInput("--expert", f"there is no {name}; see: anamnesis api GET experts") from None
        raise


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
            talk = _obey(talk, command, rest.strip())
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
    if shown.turn_id and talk.temporary and shown.text.strip():
        talk.said += [{"role": "user", "content": message}, {"role": "assistant", "content": shown.text}]


def _obey(talk: _Talk, command: str, rest: str) -> _Talk:
    """Carry out a command; neither it nor its output reaches the model or memory.

    Returns:
        The conversation that goes on.
    """
    try:
        match command:
            case "/new":
                return _begin(talk, rest or _unused_name(talk))
            case "/help":
                _show_help()
            case _:
                console.print(f"[yellow]There is no command {escape(command)}; nothing was sent.[/]")
                _show_help()
    except InvalidInput as error:
        console.print(f"[red]{escape(error.message)}[/]")
    except ClientError as error:
        console.print(f"[red]{escape(told(error))}[/]")
    return talk


def _unused_name(talk: _Talk) -> str:
    """Return a name that no conversation of the user has yet: `terminal-2` and so on."""
    names = {each["session_id"] for each in talk.service.items("conversations", params={"user_id": talk.user})}
    return next(name for number in range(2, len(names) + 3) if (name := f"terminal-{number}") not in names)


def _begin(talk: _Talk, session: str) -> _Talk:
    if not is_id(session):
        raise InvalidInput("/new", f"The name of a conversation {RULE}.")
    begun = replace(talk, session=session, temporary=False, said=[])
    _enter(begun)
    return begun


def _show_help() -> None:
    for command, what in _COMMANDS.items():
        console.print(f"  [bold]{escape(command):<14}[/] {what}")
    console.print("[dim]  A message that begins with a slash is sent with two: //home is a folder.[/]")
