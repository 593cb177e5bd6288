"""Plays a long conversation, and what its prompts were made of."""

from dataclasses import dataclass, field

from benchmarks.conversation_rig import Rig, rig
from benchmarks.dialogue import CHAT_MODEL, message_of, prompt_tokens

Prompt = list[tuple[str, str]]
"""Role and text of its messages."""

STRATEGIES = ("window", "summary", "topics")
_SYSTEM = frozenset({"system", "developer"})
_EVERYTHING = "1000000"


@dataclass
class Played:
    """A conversation, turn by turn."""

    strategy: str
    sections: list[dict[str, int]] = field(default_factory=list)
    """Tokens by section, as the service estimates them."""
    prefixes: list[dict[str, float]] = field(default_factory=list)
    """The share of the prompt's stable part that stood in the prompt before, as the service reports it."""
    prompts: list[int] = field(default_factory=list)
    """Tokens of the recorded prompts by the stand-in's tokenizer."""
    stable: list[int] = field(default_factory=list)
    """Tokens of what stands before the volatile tail and the new message."""
    reused: list[int] = field(default_factory=list)
    """Tokens of it that began the prompt of the turn before as well."""
    first_archive: int | None = None
    """The first turn behind which topics were archived, counted from 1."""
    unsettled: int = 0
    """Turns behind which work was left over when the next one began."""
    degraded: int = 0

    def add_prompt(self, prompt: Prompt, before: Prompt) -> None:
        """Count what is in a prompt and what it has in common with the one before."""
        stable = stable_part(prompt)
        self.prompts.append(prompt_tokens(prompt))
        self.stable.append(prompt_tokens(stable))
        self.reused.append(prompt_tokens(common_beginning(stable, before)))

    def shared(self, last: int) -> float:
        """Share of the stable parts' tokens that was reused, over the turns 2 to `last`."""
        return sum(self.reused[1:last]) / max(1, sum(self.stable[1:last]))

    def kept(self, last: int) -> float:
        """Share of the stable parts' tokens with which the next prompt began too, over the turns 2 to `last`."""
        return sum(self.reused[1:last]) / max(1, sum(self.stable[: last - 1]))


def stable_part(prompt: Prompt) -> Prompt:
    """Return the prompt before the new message and a system message directly before it.

    A system message that follows another one, or begins the prompt, is not one that changes every turn.
    """
    end = len(prompt) - 1
    if end > 1 and prompt[end - 1][0] in _SYSTEM and prompt[end - 2][0] not in _SYSTEM:
        end -= 1
    return prompt[:end]


def common_beginning(one: Prompt, other: Prompt) -> Prompt:
    """The messages that both begin with."""
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return one[:same]


def play(strategy: str, turns: int, seed: int, topics_window: int, scale: float = 1.0) -> Played:
    """Play a conversation with an expert of this strategy, in its own service.

    The next message comes when the background work is done: a person takes longer to write one.
    """
    settings = {"context_budget_tokens": _EVERYTHING} if strategy == "window" else {}
    played = Played(strategy)
    with rig(scale=scale, **settings) as service:
        service.add_expert(strategy, topics_window)
        before: Prompt = []
        for turn in range(1, turns + 1):
            before = _turn(service, played, turn, message_of(seed, turn, scale), before)
    return played


def _turn(service: Rig, played: Played, turn: int, message: str, before: Prompt) -> Prompt:
    told = service.say("long", message, played.strategy)
    stored = service.turn(told["turn_id"])
    report = stored["context_report"]
    prompt = next(one.prompt for one in service.model.requests if one.body.get("model") == CHAT_MODEL)
    service.model.requests.clear()
    played.sections.append(report["tokens"])
    played.prefixes.append(report.get("prefix", {}))
    played.add_prompt(prompt, before)
    played.degraded += bool(stored["degraded"])
    played.unsettled += not service.settle()
    if played.first_archive is None and service.topics_of(told["conversation_id"]):
        played.first_archive = turn
    return prompt
