"""Messages for a benchmark of turns: no two alike, of three kinds, in English and Chinese.

They are read from a folder of dialogues (`<name>_<language>/conversations.jsonl` and `questions.jsonl`, and
`tone/tasks_<language>_dev.jsonl`), or made up.
"""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Literal

Kind = Literal["question", "statement", "task"]
Language = Literal["en", "zh"]

_LONGEST = 400
"""Characters of a message."""
_FEW = 30
"""Messages of which there must be that many in a folder."""

_FORMS: dict[Language, dict[Kind, tuple[str, ...]]] = {
    "en": {
        "question": (
            "When did {who} last go to {where}?",
            "What did I say about {thing} and {who}?",
            "Which {thing} did {who} bring from {where}?",
            "Do you remember why {who} was unhappy with the {thing} in {where}?",
        ),
        "statement": (
            "{who} and I went to {where} on {day} and came back with a {thing}.",
            "My {thing} broke again, so {who} lends me another until {day}.",
            "I have decided to learn more about {thing}s; {who} from {where} will help me every {day}.",
            "{who} moves to {where} on {day}, and I get the old {thing}.",
        ),
        "task": (
            "Write three sentences about a {thing} in {where} for {who}.",
            "Suggest a plan for a {day} with {who} in {where}, with a {thing} and no car.",
            "Translate into French: the {thing} of {who} was left in {where} on {day}.",
            "List five uses of a {thing} that {who} would like in {where}.",
        ),
    },
    "zh": {
        "question": (
            "{who}上次去{where}是什么时候？",
            "关于{thing}和{who}我说过什么？",
            "{who}从{where}带回来的是哪个{thing}？",
            "你还记得{who}为什么对{where}的{thing}不满意吗？",
        ),
        "statement": (
            "{day}我和{who}去了{where}，还买了一个{thing}回来。",
            "我的{thing}又坏了，{who}答应借我一个用到{day}。",
            "我决定好好了解一下{thing}，{where}的{who}每个{day}都会来帮我。",
            "{who}{day}要搬到{where}，旧的{thing}就归我了。",
        ),
        "task": (
            "给{who}写三句话，介绍{where}的{thing}。",
            "帮我和{who}安排{day}在{where}的一天，要带上{thing}，不开车。",
            "把这句话翻译成英文：{who}的{thing}{day}落在了{where}。",
            "列出{who}在{where}会喜欢的{thing}的五种用法。",
        ),
    },
}
_WORDS: dict[Language, dict[str, tuple[str, ...]]] = {
    "en": {
        "who": ("Ada", "my brother", "Tom from work", "Mrs Lin", "our neighbour", "my cousin Eva", "the plumber",
                "Karim", "my old teacher", "Yuki", "the twins", "aunt Rosa", "my flatmate", "Jonas"),
        "where": ("Oslo", "the market hall", "the lake house", "Porto", "the new library", "Kyoto", "the harbour",
                  "our garden", "the climbing hall", "Leeds", "the night train", "the old mill"),
        "thing": ("bicycle lamp", "kettle", "violin", "tent", "recipe book", "camera", "blue lamp", "chess set",
                  "wool coat", "map", "clay pot", "telescope", "rice cooker"),
        "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    },
    "zh": {
        "who": ("小林", "我哥哥", "同事老王", "林阿姨", "楼下的邻居", "表妹", "修水管的师傅", "阿凯", "以前的老师",
                "优子", "双胞胎", "外婆", "室友", "小乔"),
        "where": ("杭州", "菜市场", "湖边的房子", "厦门", "新图书馆", "京都", "码头", "院子里", "攀岩馆", "成都",
                  "夜车上", "老磨坊"),
        "thing": ("自行车灯", "水壶", "小提琴", "帐篷", "菜谱", "相机", "蓝色台灯", "象棋", "羊毛大衣", "地图",
                  "陶罐", "望远镜", "电饭锅"),
        "day": ("周一", "周二", "周三", "周四", "周五", "周六", "周日"),
    },
}  # fmt: skip


class Messages:
    """Messages of every kind and language, each handed out once before any comes again."""

    def __init__(self, folder: Path | None) -> None:
        """Take the folder that they are read from; None = they are made up.

        Raises:
            ValueError: the folder has too few messages of a kind.
        """
        self._all: dict[tuple[Language, Kind], list[str]] = {}
        for language, forms in _FORMS.items():
            for kind in forms:
                found = _made_up(language, kind) if folder is None else _read(folder, language, kind)
                if len(found) < _FEW:
                    raise ValueError(f"{folder} has only {len(found)} messages of the kind {language} {kind}")
                Random(7).shuffle(found)
                self._all[language, kind] = found
        self._next = {each: itertools.cycle(found) for each, found in self._all.items()}

    def some(self, language: Language, kind: Kind, count: int) -> list[str]:
        """Return the next messages of a kind."""
        return list(itertools.islice(self._next[language, kind], count))

    def past(self, language: Language, user: int, count: int) -> Iterator[str]:
        """Yield what a user has said so far; two users have not said the same in the same order."""
        statements = self._all[language, "statement"]
        chosen = Random(user)
        for number in range(count):
            text = chosen.choice(statements)
            yield text if number < len(statements) else f"{text} ({number})"


def _read(folder: Path, language: Language, kind: Kind) -> list[str]:
    if kind == "task":
        files, key = [folder / "tone" / f"tasks_{language}_dev.jsonl"], "text"
    elif kind == "question":
        files, key = sorted(folder.glob(f"*_{language}/questions.jsonl")), "question"
    else:
        files, key = sorted(folder.glob(f"*_{language}/conversations.jsonl")), "text"
    found: dict[str, None] = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row.get("role", "user") == "user" and len(row[key]) <= _LONGEST:
                found[row[key]] = None
    return list(found)


def _made_up(language: Language, kind: Kind) -> list[str]:
    words = _WORDS[language]
    chosen = itertools.product(_FORMS[language][kind], *words.values())
    found = (form.format(**dict(zip(words, each, strict=True))) for form, *each in chosen)
    return list(dict.fromkeys(found))
