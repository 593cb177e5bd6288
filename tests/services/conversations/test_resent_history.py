"""What a client means by the history that it sends along."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.conversations.resent_history import HistoryMatch, ResentHistory, StoredMessage, compare
from services.conversations.values import Role, message_digest


@dataclass
class Stored:
    """A conversation as it goes on, in which every turn is answered unless it says otherwise."""

    messages: list[StoredMessage] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def add(self, *texts: str, answered: bool = True, unfinished: bool = False) -> UUID:
        """A turn with a message, and with an answer unless there is none."""
        turn_id = uuid4()
        for text, role in zip(texts, _ROLES, strict=False):
            digest = message_digest(role, text)
            one = StoredMessage(uuid4(), turn_id, role, digest, answered=answered, unfinished=unfinished)
            self.messages.append(one)
            self.texts.append(text)
        return turn_id

    def cut(self, turn_id: UUID) -> None:
        """Put a turn and what follows it aside."""
        first = next(n for n, each in enumerate(self.messages) if each.turn_id == turn_id)
        del self.messages[first:], self.texts[first:]


_ROLES: tuple[Role, ...] = ("user", "assistant")


def _meant(stored: Stored, *texts: str, first: Role = "user") -> HistoryMatch:
    """What is meant by these messages, of which the last is the newest."""
    start = _ROLES.index(first)
    earlier = [message_digest(_ROLES[(start + n) % 2], text) for n, text in enumerate(texts[:-1])]
    return compare(stored.messages, ResentHistory(earlier, message_digest("user", texts[-1])))


@pytest.fixture
def talk() -> Stored:
    """Three turns."""
    stored = Stored()
    for number in (1, 2, 3):
        stored.add(f"q{number}", f"a{number}")
    return stored


def _turn(stored: Stored, number: int) -> UUID:
    return stored.messages[2 * (number - 1)].turn_id


def test_missing_messages_are_no_evidence(talk: Stored) -> None:
    assert _meant(talk, "q2", "a2", "q3", "a3", "q4") == HistoryMatch()
    assert _meant(talk, "a3", "q4", first="assistant") == HistoryMatch()
    assert _meant(talk, "So far: …", "a3", "q4") == HistoryMatch()
    assert _meant(talk, "q4") == HistoryMatch()
    assert _meant(talk, "q1") == HistoryMatch()
    assert _meant(talk, "something", "else", "q4") == HistoryMatch(related=False)


def test_a_cut_history_still_tells_an_edit_where_it_shows_a_whole_turn(talk: Stored) -> None:
    assert _meant(talk, "q2", "a2", "other") == HistoryMatch(put_aside=_turn(talk, 3))
    assert _meant(talk, "a2", "other", first="assistant") == HistoryMatch()


def test_an_unknown_end_is_taken_in(talk: Stored) -> None:
    assert _meant(talk, "q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4", "q5") == HistoryMatch(unknown_from=6)
    assert _meant(talk, "q1", "a1", "q2", "changed", "q4") == HistoryMatch(
        put_aside=_turn(talk, 2), unknown_from=2
    )


def test_a_turn_without_an_answer_need_not_be_shown(talk: Stored) -> None:
    failed = talk.add("q4", answered=False)
    assert _meant(talk, "q1", "a1", "q2", "a2", "q3", "a3", "q5") == HistoryMatch()
    assert _meant(talk, "q1", "a1", "q2", "a2", "q3", "a3", "q4") == HistoryMatch(
        put_aside=failed, reason="regenerate"
    )
    assert _meant(talk, "q4") == HistoryMatch(put_aside=failed, reason="regenerate")
    talk.add("q5", "a5")
    assert _meant(talk, "q1", "a1", "q2", "a2", "q3", "a3", "q5", "a5", "q6") == HistoryMatch()


def test_a_message_that_is_under_way_is_followed(talk: Stored) -> None:
    running = talk.add("q4", answered=False, unfinished=True)
    assert _meant(talk, "q1", "a1", "q2", "a2", "q3", "a3", "q4") == HistoryMatch(follow=running)
    assert _meant(talk, "q4") == HistoryMatch(follow=running)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "again", "edit", "fail", "show less"]),
        st.integers(0, 9),
        st.sampled_from(["yes", "no", "go on"]),
    ),
    min_size=1,
    max_size=14,
)


@given(_STEPS)
def test_a_client_that_shows_its_conversation_finds_it_stored_so(steps: Sequence[tuple[str, int, str]]) -> None:
    stored, shown, left_out = Stored(), list[str](), 0
    for number, (step, place, word) in enumerate(steps):
        text = word
        if step == "show less":  # an old turn or more, but not the newest
            left_out += max(0, min(2 * place, len(shown) - left_out - 2))
            continue
        turns = (len(shown) - left_out) // 2
        if step in {"again", "edit"} and turns > 1 + (left_out > 0):
            at = left_out + 2 * (1 + place % (turns - 1))
            text = shown[at] if step == "again" else f"{word} {number}"
            del shown[at:]
        meant = _meant(stored, *shown[left_out:], text)
        assert meant.follow is None
        assert meant.unknown_from is None
        if meant.put_aside is not None:
            stored.cut(meant.put_aside)
        if step == "fail":
            stored.add(text, answered=False)
            continue
        stored.add(text, f"answer {number}")
        shown += [text, f"answer {number}"]
        answered = [t for t, each in zip(stored.texts, stored.messages, strict=True) if each.answered]
        assert answered == shown
