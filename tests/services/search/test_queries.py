import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.search.queries import RecallQuery, Utterance, make_queries
from services.text.language import Language
from services.text.questions import asks, asks_of_oneself, is_about_oneself, is_small_talk

FILM = [
    Utterance("user", "I saw a film by Kurosawa yesterday", "Anna"),
    Utterance("assistant", "Seven Samurai is his best known", "Assistant"),
]
NOVEL = [
    Utterance("user", "昨天读完了《边城》", "小林"),
    Utterance("assistant", "沈从文的代表作，写的是湘西。", "助手"),
]


def test_a_question_that_stands_by_itself_is_the_only_query() -> None:
    asked = "Where did Anna buy the green winter coat and gloves?"
    assert make_queries(asked, FILM) == [RecallQuery(asked, 1.0, "message")]


@pytest.mark.parametrize("message", ["When was the director you mentioned born?", "Who else?", "He was a genius"])
def test_a_message_that_leans_on_the_talk_is_sought_with_it(message: str) -> None:
    first, second = make_queries(message, FILM, speaker="Anna")
    assert (first.kind, second.kind) == ("message", "context")
    assert first.weight < second.weight
    assert second.text == (
        f"Anna: I saw a film by Kurosawa yesterday\nAssistant: Seven Samurai is his best known\nAnna: {message}"
    )


@pytest.mark.parametrize("message", ["刚才那个作者还写过什么书？", "他是哪里人？", "然后呢"])
def test_a_chinese_message_that_leans_on_the_talk_is_sought_with_it(message: str) -> None:
    kinds = {query.kind: query.text for query in make_queries(message, NOVEL)}
    assert "边城" in kinds["context"]
    assert kinds["message"] == message


@pytest.mark.parametrize(
    ("message", "recent"),
    [("What did Anna tell Robert about the harbour festival?", FILM), ("陈静的生日聚会在哪家餐厅举行？", NOVEL)],
)
def test_a_question_that_names_its_subject_is_kept_clear_of_the_talk(
    message: str, recent: list[Utterance]
) -> None:
    assert [query.kind for query in make_queries(message, recent)] == ["message"]


@pytest.mark.parametrize(
    "message", ["What do you think I should wear to the wedding?", "你觉得我穿什么去婚礼好呢？"]
)
def test_who_wants_counsel_is_on_the_subject_of_the_talk(message: str) -> None:
    assert "context" in {query.kind for query in make_queries(message, FILM)}


def test_of_the_talk_the_users_last_messages_and_the_last_answer_are_taken() -> None:
    recent = [Utterance("user" if at % 2 == 0 else "assistant", f"word{at}") for at in range(20)]
    (context,) = [query.text for query in make_queries("and that?", recent) if query.kind == "context"]
    assert context.split() == ["word10", "word12", "word14", "word16", "word18", "word19", "and", "that?"]


def test_advice_is_sought_among_what_the_user_likes() -> None:
    (preference,) = [q for q in make_queries("Can you recommend a restaurant?") if q.kind == "preference"]
    assert "restaurant" in preference.text
    assert "recommend" not in preference.text
    (preference,) = [q for q in make_queries("推荐一部周末看的电影") if q.kind == "preference"]
    assert "电影" in preference.text
    assert "喜欢" in preference.text


def test_without_a_conversation_there_is_no_context() -> None:
    assert [query.kind for query in make_queries("What about that?")] == ["message"]


@pytest.mark.parametrize("message", ["", "  ", "!!! ..."])
def test_without_words_there_is_nothing_to_seek(message: str) -> None:
    assert make_queries(message, FILM) == []


@pytest.mark.parametrize(
    "message",
    [
        *("Thanks!", "ok, great", "Good morning", "Nice to meet you", "You're welcome", "Have a nice day", "👍"),
        *("好的", "好的，谢谢你！", "嗯嗯", "哈哈哈哈", "没关系", "祝你周末愉快", "哈哈，真有意思"),
    ],
)
def test_courtesies_are_small_talk(message: str) -> None:
    assert is_small_talk(message)


@pytest.mark.parametrize("message", ["thanks, and the hotel?", "好的，那家酒店叫什么", "My dog is ill", "茶"])
def test_what_has_a_subject_is_no_small_talk(message: str) -> None:
    assert not is_small_talk(message)


@pytest.mark.parametrize(
    "message",
    [
        "What's my dog called?",
        "Which film did I mention?",
        "我的狗叫什么",
        "我去年住在哪里？",
        "Where have we been?",
    ],
)
def test_a_question_may_be_about_oneself(message: str) -> None:
    assert is_about_oneself(message, "en" if message.isascii() else "zh")


@pytest.mark.parametrize(
    "message",
    ["How do I cook rice?", "How do vaccines work?", "帮我翻译这句话", "我想学象棋，怎么开始？"],
)
def test_a_general_question_is_not_about_oneself_for_being_put_so(message: str) -> None:
    assert not is_about_oneself(message, "en" if message.isascii() else "zh")


@given(
    st.text(max_size=120),
    st.lists(st.builds(Utterance, st.sampled_from(["user", "assistant"]), st.text(max_size=40)), max_size=4),
)
def test_there_are_three_queries_at_most_and_the_message_comes_first(
    message: str, recent: list[Utterance]
) -> None:
    queries = make_queries(message, recent)
    assert len(queries) <= 3
    assert all(query.weight > 0 and query.text.strip() for query in queries)
    if queries:
        assert queries[0].text == message.strip()


@pytest.mark.parametrize(
    ("message", "language"),
    [
        ("whats my locker number", "en"),
        ("wait, wheres the spare charger", "en"),
        ("on which day is the gas man coming", "en"),
        ("我的工號是幾號", "zh"),
        ("我家狗叫啥", "zh"),
    ],
)
def test_a_question_is_known_without_its_mark_and_in_any_spelling(message: str, language: Language) -> None:
    assert asks(message, language)


@pytest.mark.parametrize("message", ["whatever you like", "My watch broke", "on Whitney street we turned left"])
def test_no_question_word_is_found_within_another(message: str) -> None:
    assert not asks(message, "en")


@pytest.mark.parametrize(
    ("message", "language", "own"),
    [
        ("what will i charge for a lesson", "en", True),
        ("who should I ring about the roof?", "en", True),
        ("我在哪儿上班？", "zh", True),
        ("how do I boil rice?", "en", False),
        ("What is the capital of France?", "en", False),
    ],
)
def test_a_question_of_the_users_own_life_is_told_from_a_general_one(
    message: str, language: Language, own: bool
) -> None:
    assert asks_of_oneself(message, language) == own


@pytest.mark.parametrize(
    "message",
    ["我先生什么都吃。", "他谁的话也不听。", "不管什么时候我都在家。", "我没什么忌口。", "去过好几次厦门。"],
)
def test_a_question_word_for_anything_or_nothing_asks_nothing(message: str) -> None:
    assert not asks(message, "zh")
    assert asks(f"{message[:-1]}？", "zh")


@pytest.mark.parametrize("message", ["When I was five we moved to Porto.", "What a day at the bakery!"])
def test_a_clause_and_an_exclamation_ask_nothing(message: str) -> None:
    assert not asks(message, "en")
