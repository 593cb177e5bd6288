"""A user's own words, apart from what clients put around them; and requests that are no conversation."""

import pytest

from api.openai.client_message import ClientMessage
from api.openai.messages import ClientRequest, read_messages
from api.openai.utilities import is_utility
from api.openai.wrappers import unwrap

RAG = """### Task:
Respond to the user query using the provided context, with citations in the form [id].

### Guidelines:
- If you don't know the answer, say so.

<context>
<source id="1" name="leave.md">Twelve days a year.</source>
<source id="2" name="pay.md">On the 25th.</source>
</context>
"""
FILES = """<attached_files>
<file type="file" id="551b593a" url="551b593a" content_type="text/plain" name="leave.txt"/>
</attached_files>"""


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (f"{RAG}\nHow many days of leave do I have?", "How many days of leave do I have?"),
        (f"{RAG}\n<user_query>\n我有几天年假？\n</user_query>", "我有几天年假？"),
        (
            "Translate this.\n<!-- SYSTEM CONTEXT (NOT PART OF USER QUERY) -->\nx\n<!-- END SYSTEM CONTEXT -->",
            "Translate this.",
        ),
        (f"{RAG}\n{FILES}\n\nHow many days of leave do I have?", "How many days of leave do I have?"),
        (RAG, ""),
        ("Current date: 2026-11-22\n\nWhat is on today?", "What is on today?"),
    ],
)
def test_what_clients_put_around_a_message_is_no_part_of_it(sent: str, said: str) -> None:
    unwrapped = unwrap(sent)
    assert unwrapped.said == said
    assert unwrapped.attached


@pytest.mark.parametrize(
    "sent",
    [
        "What does <context> mean in XML?",
        'Why does <source src="a.mp4"> not play in my <video>?',
        "### Task:\nWrite a poem about rain.",
        "My current date is with Anna.",
        "<context>\nI moved to Bern.\n</context>",
    ],
)
def test_what_users_write_themselves_stays(sent: str) -> None:
    assert unwrap(sent).said == sent


def _messages(*said: tuple[str, str]) -> list[ClientMessage]:
    return [ClientMessage(role=role, content=content) for role, content in said]


TITLE = """### Task:
Generate a concise, 3-5 word title with an emoji summarizing the chat history.
### Output:
JSON format: { "title": "your concise title here" }
### Chat History:
<chat_history>
USER: Hello
ASSISTANT: Hi
</chat_history>"""


NEXTCHAT_TOPIC = "使用四到五个字直接返回这句话的简要主题，不要解释、不要标点，如果没有主题，请直接返回“闲聊”"
NEXTCHAT_COMPRESSION = "简要总结一下对话内容，用作后续的上下文提示 prompt，控制在 200 字以内"
CHATBOX_NAME = (
    "Based on the chat history, give this conversation a name.\nKeep it short - 10 characters max, no quotes.\n"
    "Use English.\nJust provide the name, nothing else.\n\nHere's the conversation:\n\n```\nHi\n```"
)
LOBECHAT_DESCRIPTION = "你是一名擅长会话的助理，你需要将用户的会话做一个3句话以内的总结。"


@pytest.mark.parametrize(
    "messages",
    [
        _messages(("user", TITLE)),
        _messages(
            ("system", "You talk well. Summarize the conversation into a title of at most ten words."),
            ("user", "Hello"),
        ),
        _messages(("user", "Provide a concise title for the conversation.\n\nConversation:\nUser: Hi\nAI: Hello")),
        _messages(("system", "Name this conversation with a short title:\n<conversation>\nHi\n</conversation>")),
        _messages(("user", "你好"), ("assistant", "你好！"), ("user", NEXTCHAT_TOPIC)),
        _messages(("user", "Hi"), ("assistant", "Hello"), ("system", NEXTCHAT_COMPRESSION)),
        _messages(("user", CHATBOX_NAME)),
        _messages(
            ("system", LOBECHAT_DESCRIPTION), ("user", "user: 你好\n\n请总结上述对话内容，不超过 50 个字。")
        ),
    ],
)
def test_requests_for_titles_and_tags_are_known_by_their_form(messages: list[ClientMessage]) -> None:
    assert is_utility(messages, {}) == "template"


@pytest.mark.parametrize(
    "messages",
    [
        _messages(("user", "Generate a title for my blog post about tea.")),
        _messages(("user", "### Task:\nWrite a function that adds two numbers.")),
        _messages(("system", "You are a tutor. Suggest follow-up questions about each topic."), ("user", "Hi")),
        _messages(("user", "Hi"), ("assistant", "Hello"), ("user", "What would be a good title for this chat?")),
        _messages(("user", NEXTCHAT_COMPRESSION), ("assistant", "好的。"), ("user", "谢谢")),
    ],
)
def test_users_who_ask_for_titles_are_answered_as_users(messages: list[ClientMessage]) -> None:
    assert is_utility(messages, {}) is None


def test_a_header_says_that_a_request_is_no_conversation() -> None:
    assert is_utility(_messages(("user", "Hi")), {"X-OpenWebUI-Task": "title_generation"}) == "header"
    assert is_utility(_messages(("user", "Hi")), {"X-OpenWebUI-Task": ""}) is None


def test_a_request_is_taken_apart() -> None:
    messages = _messages(
        ("system", "Be brief."),
        ("user", f"{RAG}\nOne?"),
        ("assistant", "Two."),
        ("tool", "ignored"),
        ("developer", "Be kind."),
        ("user", f"{RAG}\nThree?"),
    )
    request = read_messages(messages)
    assert isinstance(request, ClientRequest)
    assert (request.message, request.instructions) == ("Three?", "Be brief.\n\nBe kind.")
    assert [each["content"] for each in request.earlier] == ["One?", "Two."]
    assert "ignored" in request.attached[0]
    assert "Twelve days" in request.attached[1]
