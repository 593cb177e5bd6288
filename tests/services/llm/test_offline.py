"""The built-in model quotes what it was given and makes nothing up."""

from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from services.context.sources.days import days_text
from services.llm.offline import OfflineChatModel
from services.text.language import Language
from state.prompt import AskedDays, DaySummary, SaidThenLine

pytestmark = pytest.mark.anyio

EXPERT = SystemMessage("You are a cook. The secret ingredient of every dish is nutmeg. 秘密配料是肉豆蔻。")


def ask(*messages: BaseMessage | str) -> AIMessage:
    """The answer to these messages; strings are the user's."""
    return OfflineChatModel().invoke([HumanMessage(m) if isinstance(m, str) else m for m in messages])


async def streamed(model: Any, messages: list[BaseMessage]) -> tuple[list[str], AIMessageChunk]:
    parts = [part async for part in model.astream(messages)]
    whole = parts[0]
    for part in parts[1:]:
        whole += part
    return [part.text for part in parts if part.text], whole


@pytest.mark.parametrize(
    ("history", "question", "quote"),
    [
        (["My dog is called Rex. I live in Leeds."], "What is my dog called?", "“My dog is called Rex.”"),
        (["I prefer aisle seats.", "I like tea."], "What did I say about seats?", "“I prefer aisle seats.”"),
        (["She lives in Oslo! It rains."], "Where does she live?", "“She lives in Oslo!”"),
        (["我家的猫叫小花。我住在杭州。"], "我的猫叫什么名字？", "「我家的猫叫小花。」"),
        (["我对花生过敏。", "我喜欢喝茶。"], "我说过对什么过敏？", "「我对花生过敏。」"),
        (["会议改到星期四下午！别忘了。"], "会议在星期几？", "「会议改到星期四下午！」"),
        (["我的邮箱是abc@example"], "邮箱是多少", "「我的邮箱是abc@example」"),
    ],
)
def test_question_is_answered_with_what_the_user_said(history: list[str], question: str, quote: str) -> None:
    answer = ask(EXPERT, *history, question).text

    assert quote in answer


def test_the_rarest_shared_words_decide() -> None:
    history = ["The red car is fast.", "The red car is old.", "The red car has a name: Bertha."]

    answer = ask(*history, "What is the name of the red car?").text

    assert "given.) The closest I have: “The red car has a name: Bertha.”" in answer


def test_the_newest_of_equal_sentences_comes_first() -> None:
    answer = ask("My phone is a Nokia.", "My phone is a Pixel.", "Which phone do I have?").text

    assert answer.index("Pixel") < answer.index("Nokia")


def test_notes_of_the_prompt_are_quoted() -> None:
    note = SystemMessage("Known about the user:\n- allergic to walnuts\n- plays the cello")

    assert "plays the cello" in ask(EXPERT, note, "What instrument do I play?").text


@pytest.mark.parametrize(
    ("question", "words"),
    [("Where is my bicycle?", "Built-in offline model"), ("我的自行车在哪里？", "内置离线模型")],
)
def test_every_answer_says_that_it_is_the_offline_model(question: str, words: str) -> None:
    assert words in ask(question).text
    assert words in ask("My bicycle is red. 我的自行车在阳台。", question).text
    assert words in ask(question, AIMessage(""), ToolMessage("12:30", tool_call_id="c")).text


@pytest.mark.parametrize(
    ("question", "words"), [("Where is my bicycle?", "I found nothing"), ("我的自行车在哪里？", "没有找到")]
)
def test_nothing_is_made_up(question: str, words: str) -> None:
    assert words in ask(EXPERT, "I like tea. 我喜欢喝茶。", question).text


@pytest.mark.parametrize(
    ("statement", "words"), [("My bicycle is red.", "Noted"), ("我的自行车是红色的。", "收到")]
)
def test_statement_is_noted_and_not_answered(statement: str, words: str) -> None:
    answer = ask("My bicycle is fast. 我的自行车很快。", statement).text

    assert words in answer
    assert "fast" not in answer
    assert "很快" not in answer


@pytest.mark.parametrize(
    ("language", "question", "days", "said", "quote"),
    [
        ("zh", "前天我们聊了什么？", ["我养了一只猫。"], [], "「我养了一只猫。」"),
        ("en", "What did we talk about on Friday?", ["Cats and dogs."], [], "“Cats and dogs.”"),
        ("zh", "前天我说的疫苗多少钱？", ["我养了一只猫。"], ["疫苗要三百块。"], "「疫苗要三百块。」"),
        (
            "en",
            "How much is the vaccine?",
            ["Cats."],
            ["The vaccine is 30 dollars."],
            "“The vaccine is 30 dollars.”",
        ),
    ],
)
def test_days_that_are_asked_about_are_told(
    language: Language, question: str, days: list[str], said: list[str], quote: str
) -> None:
    asked = AskedDays(
        matched_text="x",
        start="2026-11-20",
        end="2026-11-20",
        closest=[],
        whole_day=False,
        message_ids=[],
        known=True,
        summaries=[DaySummary(date="2026-11-20", text=day) for day in days],
        said=[SaidThenLine(message_id="1", at="2026-11-20 12:00", speaker="User", text=text) for text in said],
        to_summarise=[],
        dropped=[],
    )
    answer = ask(SystemMessage("Be kind."), SystemMessage(days_text(asked, language)), question)
    assert answer.text.endswith(quote)


def test_own_answers_are_not_quoted() -> None:
    earlier = AIMessage("Your bicycle is made of gold.")

    assert "gold" not in ask("Hello.", earlier, "What is my bicycle made of?").text


def test_instructions_of_the_expert_are_not_quoted() -> None:
    assert "nutmeg" not in ask(EXPERT, "Tea, please.", "What is the secret ingredient?").text
    assert "肉豆蔻" not in ask(EXPERT, "请泡茶。", "秘密配料是什么？").text


def test_questions_are_not_quoted() -> None:
    answer = ask("Where is my bicycle?", "My bicycle is in the shed.", "Where is my bicycle?").text

    assert "“My bicycle is in the shed.”" in answer
    assert "“Where" not in answer


@pytest.mark.parametrize(
    "messages",
    [
        [HumanMessage("I like green tea.\n\n  And  coffee. "), HumanMessage("What tea do I like?")],
        [HumanMessage("我喜欢喝绿茶，不加糖。👩‍🚀"), HumanMessage("我喜欢喝什么茶？")],
        [HumanMessage("Hello")],
    ],
)
async def test_stream_is_the_whole_in_pieces(messages: list[BaseMessage]) -> None:
    whole = await OfflineChatModel().ainvoke(messages)
    heard: list[str] = []
    answered = await OfflineChatModel().ainvoke(messages, on_text=heard.append)

    pieces, merged = await streamed(OfflineChatModel(), messages)

    assert len(pieces) > 3
    assert "".join(pieces) == merged.text == whole.text == answered.text
    assert heard == pieces
    assert merged.usage_metadata == whole.usage_metadata


def test_usage_counts_the_prompt_and_the_answer() -> None:
    short, long = ask("Hello"), ask("Tea. " * 100, "Hello")

    assert short.usage_metadata is not None
    assert long.usage_metadata is not None
    assert long.usage_metadata["input_tokens"] > short.usage_metadata["input_tokens"] > 0
    usage = short.usage_metadata
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_the_answer_after_a_tool_quotes_its_result() -> None:
    call = AIMessage("", tool_calls=[{"name": "current_time", "args": {"zone": "UTC"}, "id": "c"}])
    answer = ask("What is the current time?", call, ToolMessage("12:30 in UTC", tool_call_id="c")).text

    assert "“12:30 in UTC”" in answer


def test_the_result_of_an_earlier_turn_does_not_answer_the_next_question() -> None:
    call = AIMessage("", tool_calls=[{"name": "current_time", "args": {"zone": "UTC"}, "id": "c"}])
    result = ToolMessage("12:30", tool_call_id="c")

    assert "12:30" not in ask("What is the time?", call, result, AIMessage("12:30."), "Where is my bicycle?").text


@pytest.mark.parametrize(
    ("recalled", "question", "quote"),
    [
        (
            "- [2026-11-21] User: My dog is called Bruno.\n  You: I think your dog is called Bello.",
            "What is the name of my dog?",
            "“My dog is called Bruno.”",
        ),
        ("- [2026-11-21] 用户: 我的狗叫布鲁诺。\n  你: 狗叫贝洛。", "我的狗叫什么？", "「我的狗叫布鲁诺。」"),
    ],
)  # fmt: skip
def test_what_is_recalled_is_quoted_without_its_date_and_without_own_answers(
    recalled: str, question: str, quote: str
) -> None:
    answer = ask(EXPERT, SystemMessage(recalled), question).text
    assert answer.endswith(quote)


MEMORY = SystemMessage(
    "<memory>\nThe user:\n- name: Ada\n- allergies: walnuts\n- home: a boat in Utrecht\n- preferences: loves "
    "ramen\n- last talk: 2026-11-19 Thursday\nYou with this user:\n- tone: dry\n</memory>"
)
ZH_MEMORY = SystemMessage(
    "<memory>\n用户：\n- 称呼：小林\n- 过敏：花生\n- 住处：杭州滨江\n- 偏好：喜欢喝龙井\n</memory>"
)
RECALLED = SystemMessage(
    "From earlier conversations:\n<memory>\n- [2026-11-12] User: My sister runs a bakery in Ghent.\n"
    "- [2026-11-13] User: Which bread keeps longest?\n  You: Rye keeps longest.\n</memory>\n\nNow: Sunday."
)


@pytest.mark.parametrize(
    "question",
    [
        "What do you know about me?",
        "so what do you remember about me",
        "Tell me everything you know about me, please.",
        "What have you learned about me so far?",
        "Who am I?",
        "Do you remember me?",
        "List all you have stored about me.",
        "What is in your memory?",
    ],
)
def test_what_is_known_of_the_user_is_listed(question: str) -> None:
    answer = ask(EXPERT, MEMORY, RECALLED, question).text
    for known in ("- name: Ada", "- allergies: walnuts", "- preferences: loves ramen", "My sister runs a bakery"):
        assert known in answer
    for other in ("Which bread", "Rye", "nutmeg", "Now:"):
        assert other not in answer


@pytest.mark.parametrize(
    "question",
    ["你知道我什么？", "你都知道我些什么呀", "你对我了解多少？", "关于我，你记得什么？", "你还记得我吗？",
     "你記得我哪些事情？", "说说你对我的了解", "我是谁？", "你了解我的情况吗？"],
)  # fmt: skip
def test_so_it_is_in_chinese(question: str) -> None:
    answer = ask(EXPERT, ZH_MEMORY, question).text
    assert "过敏：花生" in answer
    assert "住处：杭州滨江" in answer


def test_a_stranger_is_told_that_nothing_is_known_yet() -> None:
    assert "nothing about you yet" in ask(EXPERT, "What do you know about me?").text
    assert "还不知道" in ask(EXPERT, "你知道我什么？").text


def test_what_was_said_in_this_conversation_is_known_too() -> None:
    answer = ask(EXPERT, "I play the oboe.", AIMessage("Nice."), "Hello!", "What do you know about me?").text
    assert "- I play the oboe." in answer
    assert "Hello" not in answer


@pytest.mark.parametrize(
    ("memory", "question", "quote"),
    [
        (MEMORY, "What's my name?", "name: Ada"),
        (MEMORY, "What food do I like?", "preferences: loves ramen"),
        (MEMORY, "Where do I live?", "home: a boat in Utrecht"),
        (MEMORY, "What am I allergic to?", "allergies: walnuts"),
        (ZH_MEMORY, "我叫什么名字？", "称呼：小林"),
        (ZH_MEMORY, "我住在哪里？", "住处：杭州滨江"),
        (ZH_MEMORY, "我爱喝什么？", "偏好：喜欢喝龙井"),
        (ZH_MEMORY, "我对什么过敏？", "过敏：花生"),
    ],
)
def test_a_plain_question_is_answered_from_the_memory_block(
    memory: SystemMessage, question: str, quote: str
) -> None:
    assert quote in ask(EXPERT, memory, question).text


def test_a_question_about_the_user_that_nothing_is_close_to_is_answered_with_what_is_known() -> None:
    assert "- allergies: walnuts" in ask(EXPERT, MEMORY, "When is my birthday?").text
    assert "found nothing" in ask(EXPERT, MEMORY, "When is Easter?").text


def test_memory_is_read_in_the_compatible_form_too() -> None:
    first = SystemMessage(f"{EXPERT.text}\n\n{MEMORY.text}")
    asked = HumanMessage(f"<context>\n{RECALLED.text}\n</context>\n\nWhat do you know about me?")
    answer = ask(first, asked).text
    assert "- name: Ada" in answer
    assert "My sister runs a bakery" in answer
    assert "nutmeg" not in ask(first, HumanMessage("What is the secret ingredient?")).text


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("hello", "I am the built-in offline model"),
        ("Good morning!", "I am the built-in offline model"),
        ("你好！", "我是内置离线模型"),
        ("thanks", "I am the built-in offline model"),
        ("谢谢", "我是内置离线模型"),
        ("Write me a poem about the sea.", "set ANAMNESIS_LLM_MODEL"),
        ("could you translate this into German", "set ANAMNESIS_LLM_MODEL"),
        ("帮我写一首诗", "请设置 ANAMNESIS_LLM_MODEL"),
        ("翻译成英文", "请设置 ANAMNESIS_LLM_MODEL"),
        ("My bicycle is green.", "Noted"),
        ("I wrote a poem yesterday.", "Noted"),
        ("我昨天写了一首诗。", "收到"),
        ("谢谢这个词我教了孩子很久才学会", "收到"),
    ],
)
def test_each_kind_of_message_has_its_answer(message: str, answer: str) -> None:
    assert answer in ask(EXPERT, message).text


def test_a_change_of_memory_that_was_made_is_confirmed() -> None:
    changed = SystemMessage("<memory_changes>\nRemoved from memory: the dentist.\n</memory_changes>")
    answer = ask(EXPERT, changed, "Forget the dentist.")
    assert answer.text == "(Built-in offline model.) Removed from memory: the dentist."


def test_memories_that_may_have_been_meant_are_listed_without_their_ids() -> None:
    first, second = "0190a000-0000-7000-8000-0000000000aa", "0190a000-0000-7000-8000-0000000000bb"
    which = f"“I drive” may mean “a Saab” ({first}); “a Volvo” ({second}); nothing was changed."
    note = SystemMessage(f"<memory_changes>\n{which}\n</memory_changes>")
    answer = OfflineChatModel().invoke([EXPERT, note, HumanMessage("Forget that I drive.")])
    assert answer.text.endswith("“I drive” may mean “a Saab”; “a Volvo”; nothing was changed.")


def test_a_question_beside_a_command_is_not_answered_with_the_note_on_the_change() -> None:
    notes = SystemMessage(
        "Today is Tuesday.\n\nThe user asked to forget something.\n<memory_changes>\nRemoved from memory: walnuts."
        "\n</memory_changes>\nConfirm this in one short sentence; then answer whatever else the message asks."
    )
    asked = HumanMessage("Forget what I asked about walnuts. What else does the message say in short?")
    answer = OfflineChatModel().invoke([EXPERT, notes, asked])
    assert answer.text == "(Built-in offline model.) Removed from memory: walnuts."
