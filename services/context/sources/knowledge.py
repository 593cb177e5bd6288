"""Passages of a knowledge base in the prompt, with instructions for the model: one strategy per way of answering.

A knowledge base can name a strategy as its handler; otherwise the default one answers. To add one, define a
`PromptStrategy` here and add it to `HANDLERS`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.context.source import DOCUMENTS, PromptDraft, Source, inert
from services.text.language import Language
from services.text.marks import one_line
from state.prompt import Passage
from state.prompt import Source as PassageSource
from state.section import Item, Section

_PRIORITY = 20
_PASSAGES_THAT_STAY = 2
_MOST_TOKENS = 1200
_CLOSE = 1 / 8
"""Share of the best one's odds that each passage behind it must have."""
FAR_BEHIND = "far behind the best"

_HEADING: dict[Language, str] = {
    "en": "From the knowledge base; a line in brackets before each passage names its document:",
    "zh": "知识库中的段落，每段前的方括号注明了出处：",
}
_ROLE: dict[Language, str] = {
    "en": "For this answer your role is this instead: {instructions}",
    "zh": "回答这条消息时，你的角色改为：{instructions}",
}
_PAGE: dict[Language, str] = {"en": "page {page}", "zh": "第 {page} 页"}
_NOTHING_FOUND: dict[Language, str] = {
    "en": "Nothing was found in the knowledge base for the message that follows.",
    "zh": "知识库中没有找到与随后的消息有关的内容。",
}


NAME = "knowledge"


class KnowledgeSource(Source[None]):
    """Reserves the place of the passages, which are read only once the message is routed."""

    name = NAME

    def select(self, draft: PromptDraft) -> Sequence[Section]:
        """Return an empty section, which `generate` replaces by the one with the passages."""
        return (Section(NAME),)


@dataclass(frozen=True)
class PromptStrategy:
    """One way to answer from passages."""

    name: str
    """The name that a knowledge base gives as its handler."""
    guidance: Mapping[Language, str]
    """Instructions for using the passages; none for the default way."""
    numbered: bool = False
    """Whether passages are numbered, so that an answer can cite them."""
    offers_tools: bool = True
    says_when_empty: bool = False
    """Whether the prompt says that nothing was found; otherwise it does not mention the knowledge base."""

    def section(self, passages: Sequence[Passage], *, instructions: str, language: Language) -> Section:
        """Return the passages as a section; empty if there is nothing to say.

        Passages far behind the best one are left out, and the section's `dropped` counts them.

        Args:
            passages: what a document was just given for stands first, then the best first.
            instructions: of the knowledge base, for the model; may be empty.
            language: of the prompt.
        """
        if not passages and not self.says_when_empty:
            return Section(NAME)
        close = _close_to_best(passages)
        far, passages = len(passages) - len(close), close
        several = len({passage["kb_prefix"] for passage in passages}) > 1
        role = _ROLE[language].format(instructions=instructions) if instructions else ""
        found = f"{_HEADING[language]}\n<{DOCUMENTS}>" if passages else _NOTHING_FOUND[language]
        return Section(
            NAME,
            "\n\n".join(text for text in (role, self.guidance.get(language, ""), found) if text),
            items=[
                Item(self._passage(number, each, language, names_base=several), about=_source(each))
                for number, each in enumerate(passages, 1)
            ],
            closing=f"</{DOCUMENTS}>" if passages else "",
            separator="\n\n",
            priority=_PRIORITY,
            keeps=_PASSAGES_THAT_STAY,
            most_tokens=_MOST_TOKENS,
            dropped=[{"section": NAME, "items": far, "reason": FAR_BEHIND}] if far else [],
        )

    def _passage(self, number: int, passage: Passage, language: Language, *, names_base: bool) -> str:
        base = passage["kb_prefix"] if names_base else ""
        page = _PAGE[language].format(page=passage["page"]) if passage["page"] else ""
        parts = (base, f"{passage['document']} #{passage['position']}", page, passage["heading"])
        label = one_line(" · ".join(part for part in parts if part))
        return inert(f"[{f'{number}: ' if self.numbered else ''}{label}]\n{passage['text']}")


def _close_to_best(passages: Sequence[Passage]) -> Sequence[Passage]:
    """Return the passages without those far behind the best; what stands before it was given, not found."""
    odds = [each["score"] / max(1 - each["score"], 1e-9) for each in passages]
    best = odds.index(max(odds)) if odds else 0
    return [each for at, each in enumerate(passages) if at < best or odds[at] >= _CLOSE * odds[best]]


def _source(passage: Passage) -> PassageSource:
    return PassageSource(
        kb_prefix=passage["kb_prefix"],
        document=passage["document"],
        position=passage["position"],
        heading=passage["heading"],
        page=passage["page"],
        score=passage["score"],
    )


USUAL = PromptStrategy("usual", {})

CITED = PromptStrategy(
    "cited",
    {
        "en": "Answer from the passages alone. After each statement put the number of the passage that it comes "
        "from, as in [2]. What the passages do not tell, say so and do not guess.",
        "zh": "只根据这些段落回答。每句话后面用方括号注明所依据的段落编号，例如 [2]。"
        "段落里没有的内容，请直接说明没有，不要猜测。",
    },
    numbered=True,
    offers_tools=False,
    says_when_empty=True,
)
"""For manuals and rules, where answers need citations."""

HANDLERS: Mapping[str, PromptStrategy] = {strategy.name: strategy for strategy in (CITED,)}
"""Handlers that a knowledge base may name."""
