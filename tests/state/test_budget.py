import pytest

from services.context.request_budget import within
from state.budget import RequestBudget, parse_budget


def test_a_budget_is_read_from_text() -> None:
    assert parse_budget("model_calls=2, seconds=1.5,tokens=4000") == {
        "model_calls": 2,
        "seconds": 1.5,
        "tokens": 4000,
    }


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "model_calls=N"),
        ("fast", "fast"),
        ("tokens=4000,tokens=5", "model_calls=N"),
        ("tokens=0", "tokens"),
        ("tokens=1.5", "tokens"),
        ("tokens=٣", "tokens"),
        ("model_calls=101", "model_calls"),
        ("seconds=0", "seconds"),
        ("seconds=nan", "seconds"),
        ("seconds=601", "seconds"),
        ("cents=5", "cents"),
    ],
)
def test_what_is_no_budget_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        parse_budget(text)


def test_a_request_may_ask_for_less_and_not_for_more() -> None:
    usual, most = RequestBudget(seconds=20, model_calls=4), RequestBudget(seconds=30, tokens=1000)
    assert within({}, usual, most) == {"seconds": 20, "model_calls": 4, "tokens": 1000}
    assert within({"seconds": 60, "tokens": 50, "model_calls": 9}, usual, most) == {
        "seconds": 30,
        "model_calls": 9,
        "tokens": 50,
    }
    assert within({}, {}, {}) == {}
