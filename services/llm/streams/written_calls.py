"""Tool calls that a model writes into its text or its reasoning, in the form of its chat template.

Servers without the right parser pass them on as text. The forms are those of Hermes and Qwen, Qwen3-Coder, GLM,
Kimi, DeepSeek with its DSML, Mistral, MiniMax, Llama, gpt-oss, Gemini's `tool_code`, and bare JSON; in other
templates, anything between marks that are named after tools, functions or actions.
"""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from services.json_levels import TooDeep, check_levels

Offered = Mapping[str, Mapping[str, Any]]
"""The parameters of the tools that a model may call, as JSON schemas, by their names."""

_OPENINGS = (
    "<tool_call", "<|tool_call", "<｜tool▁call", "<｜DSML｜", "<function=", "<function_calls>", "[TOOL_CALLS]",
    "<minimax:tool_call>", "<invoke name=", "<tool_code>", "```tool_code", "<|python_tag|>", "<|channel|>",
    "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<｜end▁of▁sentence｜>", "<|return|>", "<|end|>", "<|call|>",
)  # fmt: skip
_WORDS = (
    r"(?:[a-z]+[:|_])?(?:(?:start|begin|end)_)?(?:tool|function|action|plugin)s?(?:_?(?:call|use|request)s?)?"
    r"(?:_(?:start|begin|end))?"
)
_IN_BRACKETS = r"\[(?:end_)?(?:tool|function)_(?:call|request)s?\]"
_NAMED_MARK = rf"(?:<\|?{_WORDS}\|?>|{_IN_BRACKETS}|✿FUNCTION✿:)"
_UNSEEN = re.compile(
    rf"{_NAMED_MARK}\s*(?=[\[{{]|<(?:\||function|invoke|parameter|name>)|call:|[\w.-]+\s*[({{\[✿])", re.IGNORECASE
)
"""A mark that is named after tools, followed by the beginning of a call."""
_UNSEEN_BEGUN = re.compile(
    rf"(?:<\|?[a-z:|_]{{0,30}}|[✿\[][a-z_✿]{{0,20}}|{_NAMED_MARK}\s*(?:<[|\w]*|[\w.-]*\s*))\Z", re.IGNORECASE
)
_UNSEEN_BETWEEN = re.compile(
    rf"(?:\s|</?\|?{_WORDS}\|?>|{_IN_BRACKETS}|✿(?:FUNCTION|ARGS)✿:|call:)+", re.IGNORECASE
)
_FIRST = re.compile(r"[<\[`✿]")
_FENCE = "```"
_MARK = re.compile(
    r"<tool_calls?>\s*(?:[\[{]|<function=|<invoke |[\w.-]+\s*(?:<arg_key>|</tool_call>|\n))"
    r"|<\|tool_calls?(?:_section)?(?:_begin)?\|>|<｜tool▁calls?▁begin｜>|<｜DSML｜\w|<function=[\w.-]+>"
    r"|\[TOOL_CALLS\]\s*[\[{\w]|<(?:minimax:tool_call|function_calls)>\s*<invoke |<invoke name=\"|```tool_code\s"
    r"|<tool_code>\s*\w|<\|python_tag\|>|<\|channel\|>\w+ to="
)
"""The beginning of a call in a known template; no other text begins like this."""
_BARE = re.compile(
    r"\A\s*(?:```\w*\s*)?(?:(?:\[\s*)?\{\s*\"(?:name|tool|tool_name|function|type|action|arguments|parameters)\""
    r"|\[\s*[a-z_][\w.]*\(|(?:print\()?default_api\.)"
)
"""The beginning of an answer that may consist of a call and nothing else."""
_BARE_WORDS = ("print(default_api.", "default_api.")
_BARE_LENGTH = 60
"""Number of characters after which such a beginning is certain to be a call or not."""
_BETWEEN = re.compile(
    r"(?:[\s,;]|</?(?:tool_calls?|function_calls|tool_code|minimax:tool_call|｜DSML｜(?:function|tool)_calls)>|</s>"
    r"|<\|/?(?:tool_calls?(?:_section)?(?:_begin|_end)?|python_tag|eom_id|eot_id|im_end|endoftext|call|end)\|>"
    r"|<｜(?:tool▁calls?▁(?:begin|end)|end▁of▁sentence)｜>|\[/?TOOL_CALLS\]|```(?:json|tool_code|tool_call|python)?)+"
)
_CLOSES = re.compile(
    r"</[\w:]+>\s*\Z|<\|/?\w*(?:end|call)\w*\|>|\[END_\w+\]|</\w*(?:tool|function|action)\w*>", re.IGNORECASE
)
_END = re.compile(r"(?:\s|<\|(?:im_end|eot_id|endoftext|return|end|call)\|>|<｜end▁of▁sentence｜>)*")
_FUNCTION = re.compile(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>(.*?)(?:</parameter>|(?=<parameter=)|\Z)()\s*", re.DOTALL)
_INVOKE = re.compile(r"<(?:｜DSML｜)?invoke name=\"([\w.-]+)\">(.*?)</(?:｜DSML｜)?invoke>", re.DOTALL)
_INVOKED = re.compile(
    r"<(?:｜DSML｜)?parameter name=\"([^\"]+)\"(?: string=\"(?:true|(false))\")?>(.*?)"
    r"</(?:｜DSML｜)?parameter>\s*",
    re.DOTALL,
)
_GLM = re.compile(
    r"\A([\w.-]{1,128})\s*((?:<arg_key>[^<]{1,200}</arg_key>\s*<arg_value>.*?</arg_value>\s*)+|(?=</tool_call>))",
    re.DOTALL,
)
_ARGUMENT = re.compile(r"<arg_key>([^<]{1,200})</arg_key>\s*<arg_value>(.*?)</arg_value>()\s*", re.DOTALL)
_NAMED = re.compile(
    r"\A(?:function<｜tool▁sep｜>|<\|channel\|>\w+ to=)?([\w.-]{1,128})(?::\d+)?"
    r"(?:<\|tool_call_argument_begin\|>|<｜tool▁sep｜>|\[CALL_ID\]\w+|\[ARGS\]|<\|constrain\|>json|<\|message\|>|json|```|\s)*"
    r"(?=\{)"
)
_LONGEST_CODE = 20_000
_PREFIXES = ("functions.", "default_api.")
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class Written:
    """The end of an answer, which was held back until the answer was complete."""

    text: str = ""
    """The part of this end that the user is to see."""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    unusable: bool = False
    """Whether this end was meant as a tool call, but cannot be run as one."""


class WrittenCalls:
    """Passes text on as it comes, and holds back what may be a tool call until the answer ends."""

    def __init__(self, offered: Offered, *, thoughts: bool = False) -> None:
        """Take the tools that may be called; calls in `thoughts` may follow other words."""
        self._offered = offered
        self._thoughts = thoughts
        self._passed: list[str] = []
        self._waiting = ""
        self._holds = False
        self._begins = bool(offered) and not thoughts
        """Whether the next text may begin an answer that is nothing but a call."""

    @property
    def holds(self) -> bool:
        """Whether text is held."""
        return bool(self._waiting)

    def feed(self, text: str) -> str:
        """Return what may be passed on."""
        if self._holds:
            self._waiting += text
            return ""
        if not (self._waiting or self._begins or _FIRST.search(text)):
            self._passed.append(text)
            return text
        text, self._waiting = self._waiting + text, ""
        if self._begins and self._is_open(text):
            self._waiting = text
            return ""
        self._begins = False
        certain = self._certain(text)
        self._waiting = text[certain:]
        self._passed.append(text[:certain])
        return text[:certain]

    def end(self) -> Written:
        """Return what became of the text that was held."""
        held, alone = self._waiting, self._thoughts or not "".join(self._passed).strip()
        if not held:
            return Written()
        marked = bool(_MARK.match(held) or _UNSEEN.match(held))
        calls, rest = _read(held, self._offered, marked=marked)
        if calls and alone and not rest.strip() and all(name in self._offered for name, _ in calls):
            return Written(calls=tuple(calls))
        if not marked:
            return Written() if _END.fullmatch(held) else Written(held)
        if self._offered or self._thoughts:
            return Written(unusable=True)
        text = _without_marks(held)
        return Written(text, unusable=alone and not text.strip())

    def _is_open(self, text: str) -> bool:
        """Return whether a text may still turn out to be a call and nothing else."""
        if _BARE.match(text):
            self._holds = True
            return True
        begun = text.lstrip()
        if any(words.startswith(begun) for words in _BARE_WORDS):
            return True
        return begun[0] in "{[`" and len(begun) < _BARE_LENGTH and not begun.startswith(_OPENINGS)

    def _certain(self, text: str) -> int:
        """Return the place from which the text is held back. A beginning inside of code does not count."""
        for found in _FIRST.finditer(text):
            rest = text[found.start() :]
            is_unseen = bool(_UNSEEN.match(rest))
            if not is_unseen and not _UNSEEN_BEGUN.match(rest) and not _may_open(rest):
                continue
            before = "".join(self._passed) + text[: found.start()]
            if before.endswith("`") or before.count(_FENCE) % 2:
                continue
            self._holds = is_unseen or rest.startswith(_OPENINGS)
            return found.start()
        return len(text)


def _may_open(text: str) -> bool:
    return any(text.startswith(opening) or opening.startswith(text) for opening in _OPENINGS)


def _without_marks(text: str) -> str:
    """Return a text without the calls and marks in it; a call that cannot be read is removed too."""
    kept: list[str] = []
    while found := min(
        filter(None, (_MARK.search(text), _UNSEEN.search(text))), key=lambda each: each.start(), default=None
    ):
        kept.append(text[: found.start()])
        calls, rest = _read(text[found.start() :], {}, marked=True)
        closing = None if calls else _CLOSES.search(text, found.end())
        text = rest if calls else text[closing.end() :] if closing else ""
    return "".join([*kept, text])


def _read(text: str, offered: Offered, *, marked: bool) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """Return the calls at the beginning of a text, and what follows them."""
    calls: list[tuple[str, dict[str, Any]]] = []
    while True:
        while between := _BETWEEN.match(text) or _UNSEEN_BETWEEN.match(text):
            text = text[between.end() :]
        found = _call_at(text, offered, marked=marked) if text else None
        if found is None:
            return calls, text
        calls += [(_plain(name), arguments) for name, arguments in found[0]]
        text = text[found[1] :]


def _call_at(text: str, offered: Offered, *, marked: bool) -> tuple[list[tuple[str, dict[str, Any]]], int] | None:
    """Return the calls at the very beginning of a text, and where they end; None = there is none."""
    for pattern, parts in ((_FUNCTION, _PARAMETER), (_INVOKE, _INVOKED), (_GLM, _ARGUMENT)):
        if found := pattern.match(text):
            name, body = found[1], found[2]
            schema = offered.get(_plain(name), {})
            value, _ = _json_at(body.strip())
            if isinstance(value, dict):
                return [(name, value)], found.end()
            values = {key: _value(schema, key, said, is_json) for key, said, is_json in _parts(parts, body)}
            return None if parts.sub("", body).strip() else ([(name, values)], found.end())
    if found := _NAMED.match(text):
        value, end = _json_at(text[found.end() :])
        return ([(found[1], value)], found.end() + end) if isinstance(value, dict) else None
    if text[0] in "{[":
        value, end = _json_at(text)
        calls = [_of_json(each, marked=marked) for each in (value if isinstance(value, list) else [value])]
        whole = [each for each in calls if each is not None]
        if whole and len(whole) == len(calls):
            return whole, end
    return _python(text)


def _parts(pattern: re.Pattern[str], body: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the name and the text of each parameter, and whether it is declared to be JSON."""
    for found in pattern.finditer(body):
        texts = [found[2], found[3]]
        is_invoked = pattern is _INVOKED
        yield found[1].strip(), texts[1] if is_invoked else texts[0], is_invoked and texts[0] == "false"


def _value(schema: Mapping[str, Any], name: str, text: str, is_json: bool) -> Any:
    kind = schema.get("properties", {}).get(name, {}).get("type", "string")
    plain = text.removeprefix("\n").removesuffix("\n")
    if kind == "string" and not is_json:
        return plain
    value, end = _json_at(plain.strip(), any_value=True)
    return value if end == len(plain.strip()) else plain


def _json_at(text: str, *, any_value: bool = False) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text)
        check_levels(text[:end])
    except (ValueError, RecursionError, TooDeep):
        return None, 0
    return (value, end) if any_value or isinstance(value, dict | list) else (None, 0)


def _of_json(value: Any, *, marked: bool) -> tuple[str, dict[str, Any]] | None:
    if not isinstance(value, dict):
        return None
    if isinstance(inner := value.get("function"), dict):
        value = inner
    name = next((value[key] for key in ("name", "tool", "tool_name", "function", "action") if key in value), None)
    keys = [key for key in ("arguments", "parameters", "args", "input", "action_input") if key in value]
    arguments = value[keys[0]] if keys else {} if marked else None
    if isinstance(arguments, str):
        arguments, _ = _json_at(arguments)
    return (name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None


def _python(text: str) -> tuple[list[tuple[str, dict[str, Any]]], int] | None:
    """Return calls in Python, up to the end of the code."""
    ends = [place for mark in (_FENCE, "</tool_code>", "<|") if (place := text.find(mark)) >= 0]
    code = text[: min(ends, default=len(text))]
    if len(code) > _LONGEST_CODE:
        return None
    try:
        check_levels(code)
        statements = ast.parse(code.strip()).body
        calls = [_of_python(each) for statement in statements for each in _expressions(statement)]
    except (ValueError, SyntaxError, MemoryError, RecursionError, TooDeep):
        return None
    return (calls, len(code)) if calls else None


def _expressions(statement: ast.stmt) -> Iterable[ast.expr]:
    if not isinstance(statement, ast.Expr):
        raise ValueError("It is no call.")
    value = statement.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print":
        return value.args
    return value.elts if isinstance(value, ast.List) else [value]


def _of_python(value: ast.expr) -> tuple[str, dict[str, Any]]:
    if not isinstance(value, ast.Call) or value.args:
        raise ValueError("It is no call with named arguments.")
    return ast.unparse(value.func), {str(each.arg): ast.literal_eval(each.value) for each in value.keywords}


def _plain(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name
