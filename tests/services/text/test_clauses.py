import pytest

from services.text.clauses import closes_with_question


@pytest.mark.parametrize(
    ("message", "closes"),
    [
        ("Traffic was fine today. How long does rice keep in the fridge?", True),
        ("i repotted the fern, what do i feed it with", True),
        ("我腿疼了三天，有什么办法缓解", True),
        ("书架装好了。另外，墙怎么补？", True),
        ("Any news? I have moved to Ghent.", False),
        ("She never says what she wants.", False),
        ("睡不着怎么办，我老想着考试", False),
        ("面试挺顺利，聊了好几回。", False),
        ("", False),
        ("?", True),
    ],
)
def test_a_message_closes_with_a_question_where_nothing_is_said_behind_it(message: str, closes: bool) -> None:
    assert closes_with_question(message) is closes
