"""The built-in model quotes what it was given and makes nothing up."""

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from services.llm.offline import OfflineChatModel

EXPERT = SystemMessage("You are a cook. The secret ingredient of every dish is nutmeg. 秘密配料是肉豆蔻。")


def ask(*messages: BaseMessage | str) -> AIMessage:
    """The answer to these messages; strings are the user's."""
    return OfflineChatModel().invoke([HumanMessage(m) if isinstance(m, str) else m for m in messages])


@pytest.mark.parametrize(
    ("history", "question", "quote"),
    [
        (["My dog is called Rex. I live in Leeds."], "What is my dog called?", "“My dog is called Rex.”"),
        (["我家的猫叫小花。我住在杭州。"], "我的猫叫什么名字？", "「我家的猫叫小花。」"),
        (["我的邮箱是abc@example"], "邮箱是多少", "「我的邮箱是abc@example」"),
        (
            ["I leave on Friday, can you help me pack?"],
            "When do I leave?",
            "“I leave on Friday, can you help me pack?”",
        ),
    ],
)
def test_question_is_answered_with_what_the_user_said(history: list[str], question: str, quote: str) -> None:
    assert quote in ask(EXPERT, *history, question).text


def test_instructions_of_the_expert_and_questions_are_not_quoted() -> None:
    answer = ask("Where is my bicycle?", "My bicycle is in the shed.", "Where is my bicycle?").text
    assert "“My bicycle is in the shed.”" in answer
    assert "“Where" not in answer
    assert "nutmeg" not in ask(EXPERT, "Tea, please.", "What is the secret ingredient?").text
    assert "肉豆蔻" not in ask(EXPERT, "请泡茶。", "秘密配料是什么？").text


def test_the_answer_after_a_tool_quotes_its_result() -> None:
    call = AIMessage("", tool_calls=[{"name": "current_time", "args": {"zone": "UTC"}, "id": "c"}])
    answer = ask("What is the current time?", call, ToolMessage("12:30 in UTC", tool_call_id="c")).text

    assert "“12:30 in UTC”" in answer


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


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("hello", "I am the built-in offline model"),
        ("你好！", "我是内置离线模型"),
        ("Write me a poem about the sea.", "screen Model, or set ANAMNESIS_LLM_MODEL"),
        ("帮我写一首诗", "“模型”页面选择，或设置 ANAMNESIS_LLM_MODEL"),
        ("I wrote a poem yesterday.", "Noted"),
        ("我昨天写了一首诗。", "收到"),
        ("Where is my bicycle?", "I found nothing"),
        ("我的自行车在哪里？", "没有找到"),
        ("What do you know about me?", "nothing about you yet"),
        ("你知道我什么？", "还不知道"),
        ("谢谢这个词我教了孩子很久才学会", "收到"),
    ],
)
def test_each_kind_of_message_has_its_answer(message: str, answer: str) -> None:
    said = ask(EXPERT, message).text
    assert answer in said
    assert "offline model" in said or "内置离线模型" in said


def test_memories_that_may_have_been_meant_are_listed_without_their_ids() -> None:
    first, second = "0190a000-0000-7000-8000-0000000000aa", "0190a000-0000-7000-8000-0000000000bb"
    which = f"“I drive” may mean “a Saab” ({first}); “a Volvo” ({second}); nothing was changed."
    note = SystemMessage(f"<memory_changes>\n{which}\n</memory_changes>")
    answer = OfflineChatModel().invoke([EXPERT, note, HumanMessage("Forget that I drive.")])
    assert answer.text.endswith("“I drive” may mean “a Saab”; “a Volvo”; nothing was changed.")
