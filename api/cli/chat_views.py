"""Views of `anamnesis chat`: conversations, memory, the model, and what an answer was based on."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from api.cli.chat_service import ChatService
from api.cli.shell import as_text

_MEMORIES = 10
_CANDIDATES = 8
_LONGEST_LINE = 160

_SECTIONS = {
    "system": "instructions and tools",
    "core_memory": "core memory",
    "core_memory_changes": "core memory, added since",
    "persona_card": "the user in brief",
    "summary": "summary of the conversation",
    "topics": "archived topics",
    "history": "messages of the conversation",
    "days": "records of days",
    "recall": "recalled from earlier",
    "knowledge": "knowledge base",
    "memory_changes": "changes of memory",
    "tone": "tone",
    "time": "date and time",
    "message": "your message",
}


def show_conversations(console: Console, found: Sequence[dict[str, Any]], here: str) -> None:
    """List conversations, newest first; the current one is marked."""
    if not found:
        console.print("[dim]There are no conversations yet.[/]")
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for each in found:
        mark = "*" if each["session_id"] == here else ""
        table.add_row(
            mark, escape(each["session_id"]), each["expert"], _when(each["created_at"]), escape(each["title"])
        )
    console.print(table)


def show_memory(console: Console, service: ChatService, user: str, expert: str, space: str | None) -> None:
    """Show core memory and the newest written memories, or those of a space."""
    sections = service.core_memory(user, expert, space)
    memories = service.written_memories(user, expert, space, limit=_MEMORIES)
    if not any(section["content"] for section in sections) and not memories:
        console.print("[dim]Nothing is remembered of you beside what was said in your conversations.[/]")
    for section in sections:
        for name, value in section["content"].items():
            console.print(f"  [bold]{escape(name)}[/]: {escape(as_text(value))}")
    for each in memories:
        console.print(f"  [dim]{_when(each['created_at'])[:10]}[/] {escape(_line(each['content']))}")


def show_model(console: Console, service: ChatService, expert: str) -> None:
    """Show which expert and which model answer."""
    own = service.expert(expert)["model"]
    model = own or service.model()
    console.print(f"[dim]The expert {escape(expert)} answers with: {escape(model)}[/]")


def show_report(console: Console, service: ChatService, user: str, turn: dict[str, Any]) -> None:
    """Show what the prompt of an answer contained, and what was recalled for it and why."""
    report = turn["context_report"]
    if not report:
        console.print("[dim]There is no report: the answer did not come from a model.[/]")
        return
    tokens: dict[str, int] = report["tokens"]
    used = sum(tokens.values()) - tokens.get("message", 0)
    console.print(f"The prompt had about {used} of {report['budget']} tokens, the message not counted:")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    table.add_column()
    for name, size in tokens.items():
        if size:
            table.add_row(str(size), _SECTIONS.get(name, name.replace("_", " ")))
    console.print(table)
    for each in report.get("dropped", ()):
        section = _SECTIONS.get(each["section"], each["section"])
        console.print(f"[dim]left out for lack of room: {each['items']} of {escape(section)}[/]")
    if recall := report.get("recall"):
        _show_recall(console, service, user, recall)
    for each in report.get("sources", ()):
        console.print(f"from the knowledge base: {escape(str(each.get('document', each)))}")


def _show_recall(console: Console, service: ChatService, user: str, recall: dict[str, Any]) -> None:
    shown = list(dict.fromkeys(recall["shown"]))
    reasons: dict[str, str] = {}
    scores: dict[str, float] = {}
    for hit in recall["hits"]:
        scores.setdefault(hit["episode_id"], hit["score"])
        if reason := hit.get("left_out"):
            reasons.setdefault(hit["episode_id"], reason)
    console.print(f"Recalled, of {recall['found']} that were found:" if shown else "Nothing was recalled.")
    for episode_id in shown:
        console.print(f"  {_score(scores, episode_id)} {escape(_text_of(service, user, episode_id))}")
    left_out = [each for each in reasons if each not in shown][:_CANDIDATES]
    if left_out:
        console.print("Found, and not shown:")
    for episode_id in left_out:
        text = escape(_text_of(service, user, episode_id))
        console.print(f"  [dim]{_score(scores, episode_id)} {text} ({escape(reasons[episode_id])})[/]")


def _score(scores: dict[str, float], episode_id: str) -> str:
    return f"{scores[episode_id]:.2f}" if episode_id in scores else "    "


def _text_of(service: ChatService, user: str, episode_id: str) -> str:
    found = service.episode(user, episode_id)
    return f"[{_when(found['created_at'])[:10]}] {_line(found['content'])}" if found else "(not there any more)"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"


def _when(moment: str) -> str:
    return as_text(datetime.fromisoformat(moment))
