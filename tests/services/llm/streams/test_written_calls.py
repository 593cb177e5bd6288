"""Calls of tools that models write into their text: run, or asked for once more without tools, and never shown."""

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, tool

from services.errors import ModelFailed
from services.llm.streams.text import Reasoning, Said
from tests.services.llm.clients import Make
from tests.services.llm.streams.families import chunk, frames
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.untraced

QUESTION = [HumanMessage("Where can I eat noodles?")]


@tool
def search(query: str, limit: int = 5) -> str:
    """Search for a place."""
    return query + str(limit)


@tool
def now() -> str:
    """The time."""
    return ""


TOOLS: list[BaseTool] = [search, now]
JSON = '{"query": "面馆", "limit": 3}'
CALL = f'{{"name": "search", "arguments": {JSON}}}'
KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{}"
    "<|tool_call_end|><|tool_calls_section_end|>"
)
DSML = (
    '<｜DSML｜{0}>\n<｜DSML｜invoke name="search">\n'
    '<｜DSML｜parameter name="query" string="true">面馆</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="limit" string="false">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜{0}>'
)
FORMS = {
    "Hermes, Qwen": f"<tool_call>\n{CALL}\n</tool_call>",
    "Qwen3-Coder": "<tool_call>\n<function=search>\n<parameter=query>\n面馆\n</parameter>\n<parameter=limit>\n3\n"
    "</parameter>\n</function>\n</tool_call>",
    "GLM": "<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>面馆</arg_value>\n<arg_key>limit</arg_key>\n"
    "<arg_value>3</arg_value>\n</tool_call>",
    "Kimi": KIMI.replace("{}", JSON),
    "DeepSeek V3": f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{JSON}\n```"
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "DeepSeek V3.1": f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>search<｜tool▁sep｜>{JSON}<｜tool▁call▁end｜>",
    "DeepSeek V3.2": DSML.format("function_calls"),
    "DeepSeek V4": DSML.format("tool_calls"),
    "Mistral": f"[TOOL_CALLS] [{CALL}]",
    "Mistral, by name": f"[TOOL_CALLS]search[ARGS]{JSON}",
    "MiniMax M1": f"<tool_calls>\n{CALL}\n</tool_calls>",
    "MiniMax M2": '<minimax:tool_call>\n<invoke name="search">\n<parameter name="query">面馆</parameter>\n'
    '<parameter name="limit">3</parameter>\n</invoke>\n</minimax:tool_call>',
    "Gemini": '```tool_code\nprint(default_api.search(query="面馆", limit=3))\n```',
    "Llama": f'<|python_tag|>{{"name": "search", "parameters": {JSON}}}<|eom_id|>',
    "Llama 3.1": f"<function=search>{JSON}</function>",
    "Llama 4": '[search(query="面馆", limit=3)]',
    "gpt-oss": f"<|channel|>commentary to=functions.search <|constrain|>json<|message|>{JSON}<|call|>",
    "gpt-oss, after its thoughts": "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
    f"<|channel|>commentary to=functions.search <|constrain|>json<|message|>{JSON}<|call|>",
    "LFM2": '<|tool_call_start|>[search(query="面馆", limit=3)]<|tool_call_end|>',
    "Nemotron": f"<TOOLCALL>[{CALL}]</TOOLCALL>",
    "InternLM": f"<|action_start|><|plugin|>\n{CALL}<|action_end|>",
    "Command": f'<|START_ACTION|>[{{"tool_name": "search", "parameters": {JSON}}}]<|END_ACTION|>',
    "LM Studio": f"[TOOL_REQUEST]{CALL}[END_TOOL_REQUEST]",
    "Granite": f"<|tool_call|>[{CALL}]",
    "Seed": "<seed:tool_call><function=search><parameter=query>面馆</parameter><parameter=limit>3</parameter>"
    "</function></seed:tool_call>",
    "LongCat": f"<longcat_tool_call>{CALL}</longcat_tool_call>",
    "functions by name": f"<function_call>search{JSON}</function_call>",
    "bare JSON": CALL,
    "JSON in a fence": f"```json\n{CALL}\n```",
}


def _in_pieces(text: str) -> Reply:
    return Reply([text[place : place + 5] for place in range(0, len(text), 5)])


@pytest.mark.parametrize("form", FORMS)
async def test_an_answer_that_is_a_call_and_nothing_else_calls_the_tool(
    form: str, make: Make, model_server: ModelServer, api: str
) -> None:
    model_server.script(_in_pieces(FORMS[form]))
    heard: list[str] = []

    answer = await make(model_server.base_url, api).answer(QUESTION, on_text=heard.append, tools=TOOLS)

    assert [(each["name"], each["args"]) for each in answer.tool_calls] == [
        ("search", {"query": "面馆", "limit": 3})
    ]
    assert (answer.text, [each for each in heard if not isinstance(each, Reasoning)]) == ("", [])
    assert "".join(heard) in {"", "Hm."}, "nothing of the call is heard as a thought either"


async def test_several_calls_and_one_at_the_end_of_the_reasoning_are_run(
    make: Make, model_server: ModelServer
) -> None:
    models = make(model_server.base_url, "chat")
    two = f'<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{{"name": "now", "arguments": {{}}}}\n</tool_call>'
    thought = chunk({"reasoning_content": f"I look it up.\n<tool_call>\n{CALL}\n</tool_call>"})
    model_server.script(_in_pieces(two), Reply(raw=frames(thought, chunk({}, "stop"))))
    heard: list[str] = []

    answers = [await models.answer(QUESTION, on_text=heard.append, tools=TOOLS) for _ in range(2)]

    assert [[each["name"] for each in answer.tool_calls] for answer in answers] == [["search", "now"], ["search"]]
    assert heard == [Reasoning("I look it up.\n")]


UNUSABLE = {
    "after other words": (f"我查一下。\n{FORMS['Hermes, Qwen']}", "我查一下。\n\n\nAt the station."),
    "before other words": (f"{FORMS['Hermes, Qwen']}\nSo that is it.", "At the station."),
    "of a tool that was not offered": (FORMS["Kimi"].replace("search", "browse"), "At the station."),
    "cut off": (FORMS["Hermes, Qwen"][:40], "At the station."),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_another_call_in_the_text_is_not_shown_and_the_model_is_asked_without_tools(
    name: str, make: Make, model_server: ModelServer
) -> None:
    text, shown = UNUSABLE[name]
    models = make(model_server.base_url, "chat")
    model_server.default = lambda asked: (
        _in_pieces(text) if asked.body.get("tools") else Reply(["At the station."])
    )
    said = Said()

    answer = await models.answer(QUESTION, on_text=said, tools=TOOLS)

    assert (said.text, answer.tool_calls) == (shown, [])
    assert len(model_server.requests) == 2
    assert models.takes_tools()


async def test_a_model_that_only_calls_or_only_thinks_is_paid_for_twice_at_most(
    make: Make, model_server: ModelServer
) -> None:
    models = make(model_server.base_url, "chat")
    thoughts = Reply(raw=frames(chunk({"reasoning_content": "Hm."}), chunk({}, "stop")))
    for reply in (_in_pieces(FORMS["Kimi"].replace("search", "browse")), thoughts):
        model_server.requests.clear()
        model_server.default = reply
        with pytest.raises(ModelFailed) as failed:
            await models.answer(QUESTION, on_text=lambda _: None, tools=TOOLS)
        assert (failed.value.failure, len(model_server.requests)) == ("llm_bad_response", 2)


@pytest.mark.parametrize(
    "text",
    [
        "Qwen writes `<tool_call>` first.",
        "```xml\n<tool_call>\n{}\n</tool_call>\n```\nis how Qwen calls.",
        '{"name": "Bruno"}',
        "[1] is the first note, a < b, and [TOOL",
        "<b>Bold</b> {braces}",
        "The <tool_call> tag is Qwen's.",
        "<action> is what XForms calls it, and <function> what PHP does.",
        "<plugins><plugin>x</plugin></plugins> and [tools](http://x)",
        "✿ A flower, 3 <5, and <section>text</section>.",
    ],
)
async def test_text_about_calls_and_other_text_stays_as_it_is(
    text: str, make: Make, model_server: ModelServer
) -> None:
    model_server.script(_in_pieces(text))
    said = Said()
    answer = await make(model_server.base_url, "chat").answer(QUESTION, on_text=said, tools=TOOLS)
    assert answer.text == said.text == text
    assert len(model_server.requests) == 1


async def test_a_mark_at_the_end_of_an_answer_is_not_shown(make: Make, model_server: ModelServer) -> None:
    model_server.script(_in_pieces("At the station.<|im_end|>"))
    said = Said()
    answer = await make(model_server.base_url, "chat").answer(QUESTION, on_text=said)
    assert answer.text == said.text == "At the station."


async def test_the_words_around_a_call_remain_where_no_tools_are_offered(
    make: Make, model_server: ModelServer
) -> None:
    model_server.script(_in_pieces(f"First.\n{FORMS['MiniMax M2']}\nThen."))
    said = Said()
    await make(model_server.base_url, "chat").answer(QUESTION, on_text=said)
    assert said.text == "First.\nThen."


async def test_a_call_of_a_kind_that_nobody_reads_is_not_shown(make: Make, model_server: ModelServer) -> None:
    model_server.script(
        _in_pieces("First.\n<tool_use>{name: search; 面馆}</tool_use>\nThen."),
        _in_pieces("First.\n✿FUNCTION✿: search\n✿ARGS✿: {"),
    )
    for shown in ("First.\n\nThen.", "First.\n"):
        said = Said()
        await make(model_server.base_url, "chat").answer(QUESTION, on_text=said)
        assert said.text == shown
