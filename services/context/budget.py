"""How many tokens a prompt may have."""

from dataclasses import dataclass

from state.prompt import ContextPolicy

TOPICS_SHARE = 0.25
"""Of the budget, at the most for the summaries of topics."""
HIGH_WATER = 0.5
"""Share of the budget at which the history starts anew behind the newest summary."""
ARCHIVE_SOON = 0.8
"""Share of the budget from which topics are archived behind the answer; at the whole of it, before."""


@dataclass(frozen=True)
class ContextBudget:
    """Tokens that a prompt may have, the user's message not counted."""

    total: int

    def of(self, policy: ContextPolicy) -> int:
        """The budget under an expert's policy: its own, if it has one."""
        if policy["budget"]:
            return policy["budget"]
        if policy["strategy"] == "topics":
            return int(policy["window"] * policy["threshold"])
        return self.total
