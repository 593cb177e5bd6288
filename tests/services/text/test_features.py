import pytest

from services.text.features import Feature, expected, features, fits, states


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Porto in spring",
        "Remember that my locker is 4411",
        "我在学法语",
        "Our cat sleeps all day. Can you draw one?",
        "我女兒考上了醫學院",
    ],
)
def test_a_message_that_says_something_states(text: str) -> None:
    assert states(text)


@pytest.mark.parametrize(
    "text",
    [
        "What is my cat called?",
        "Write a poem about rain",
        "Please translate this into Danish",
        "Forget my old address",
        "你还记得我的预算吗？",
        "帮我写一封邮件",
        "推荐一部电影",
        "忘掉我说过的病",
    ],
)
def test_a_question_or_an_order_states_nothing(text: str) -> None:
    assert not states(text)


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Who fixes our roof?", "name"),
        ("where does Ana study", "place"),
        ("Which day is the concert?", "time"),
        ("How many spoons do we own?", "number"),
        ("谁修的屋顶？", "name"),
        ("安娜在哪里上学", "place"),
        ("音乐会是哪天？", "time"),
        ("我们有几把勺子？", "number"),
    ],
)
def test_a_question_tells_what_kind_of_value_it_wants(question: str, wanted: Feature) -> None:
    assert wanted in expected(question, "en" if question.isascii() else "zh")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I pay 30 for the gym", "number"),
        ("the concert is on Friday", "time"),
        ("our plumber is Igor", "name"),
        ("we stay in Lisbon", "place"),
        ("音乐会在周五", "time"),
        ("健身房一年两千", "number"),
        ("修水管的叫伊戈尔", "name"),
        ("我们住在里斯本", "place"),
    ],
)
def test_a_text_tells_what_kind_of_value_it_has(text: str, found: Feature) -> None:
    assert found in features(text, "user")
    assert fits(features(text, "user"), {found})
    assert fits((), ())


def test_only_users_speak_of_themselves() -> None:
    assert "oneself" in features("I like figs", "user")
    assert "oneself" not in features("I like figs", "assistant")
    assert "oneself" not in features("Figs are sweet", "user")
