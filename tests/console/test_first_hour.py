"""The first hour in the browser, in both languages: from the start to a correction that is taken back."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, FilePayload, Page, expect

from tests.console.browser import Watched, watched
from tests.services.transfer.exports import EXPORTS, written
from tests.support.filing import add, filed
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.in_clear]

_STARTS_AGAIN_MS = 90_000


@dataclass(frozen=True)
class Language:
    """What is said and read in a language."""

    name: str
    filing: str
    """How the prompt begins that asks what of new messages belongs in memory."""
    dog: str
    """What is noted of the dog; the name in it is wrong."""
    dog_said: str
    allergy: str
    allergy_said: str
    answer: str
    right: str
    ask_rent: str
    rent: str
    document: str


EN = Language(
    name="en",
    filing="You keep an assistant's memory",
    dog="has a dog called Bruno",
    dog_said="My dog is called Bruno",
    allergy="is allergic to peanuts",
    allergy_said="I am allergic to peanuts",
    answer="Your dog is called Bruno.",
    right="has a dog called Benno",
    ask_rent="How high is the rent of the flat?",
    rent="It is 912 euros [1].",
    document="# Lease\n\nThe rent of the flat is 912 euros a month.\n",
)
ZH = Language(
    name="zh",
    filing="你维护助手对一位用户的记忆",
    dog="养了一只狗叫布鲁诺",
    dog_said="我的狗叫布鲁诺",
    allergy="对花生过敏",
    allergy_said="我对花生过敏",
    answer="你的狗叫布鲁诺。",
    right="养了一只狗叫本诺",
    ask_rent="公寓的房租是多少？",
    rent="每月 912 欧元 [1]。",
    document="# 租约\n\n这套公寓的房租是每月 912 欧元。\n",
)
_WORDS = {
    "en": {
        "model": "Which model answers?", "other": "Other", "address": "Address", "key": "Key, if it needs one",
        "field": "Model",
        "list": "List its models", "try": "Try it", "use": "Use it", "tell": "Tell something",
        "ask": "Ask in a new chat", "forget": "Make it forget", "why": "Why?", "wrong": "Wrong…",
        "right": "What is right", "save": "Save", "undo": "Undo", "archive": "Choose the archive…",
        "attach": "Add pictures or documents",
    },
    "zh": {
        "model": "由哪个模型回答？", "other": "其他", "address": "地址", "key": "密钥（如果需要）",
        "field": "模型",
        "list": "列出模型", "try": "试一试", "use": "使用它", "tell": "告诉它一件事",
        "ask": "在新对话中问它", "forget": "让它忘记", "why": "为什么？", "wrong": "不对……",
        "right": "正确的内容", "save": "保存", "undo": "撤销", "archive": "选择导出文件…",
        "attach": "添加图片或文档",
    },
}  # fmt: skip


def _stand_in(language: Language, received: Received) -> Reply:
    """A model that files what the test tells, and answers what it asks."""
    prompt = "\n".join(text for _, text in received.prompt)
    if language.filing in prompt:
        known = (
            add(language.dog, language.dog_said, "pets"),
            add(language.allergy, language.allergy_said, "allergies"),
        )
        return filed(*(each for each in known if each["quote"] in received.prompt[-1][1]))
    if received.prompt[-1][1].strip() == language.ask_rent:
        return Reply([language.rent])
    return Reply([language.answer if language.dog_said in prompt or language.dog in prompt else "OK."])


async def _connect(page: Page, words: dict[str, str], base_url: str) -> None:
    form = page.get_by_role("form", name=words["model"])
    address = form.get_by_label(words["address"])
    await form.get_by_role("button", name="Ollama").click()
    await expect(address).to_have_value("http://127.0.0.1:11434/v1")
    await form.get_by_role("button", name=words["other"]).click()
    await address.fill(base_url.removesuffix("/v1"))
    await form.get_by_role("button", name=words["list"]).click()
    await expect(form.get_by_role("alert")).to_contain_text("/v1")
    await address.fill(base_url)
    await form.get_by_label(words["key"]).fill("k")
    await form.get_by_role("button", name=words["list"]).click()
    await expect(form.get_by_label(words["field"], exact=True)).to_have_value("scripted")
    await form.get_by_role("button", name=words["try"]).click()
    await expect(form.get_by_role("status")).to_contain_text("OK.")
    await form.get_by_role("button", name=words["use"], exact=True).click()
    await expect(form).to_have_count(0, timeout=_STARTS_AGAIN_MS)


async def _new_chat(seen: Watched, card: str) -> None:
    """Send what a card of the first page proposes."""
    await seen.open("chat")
    await seen.page.get_by_role("button", name=card).click()
    await expect(seen.page.locator(".composer textarea")).to_be_focused()
    answers = await seen.page.locator(".why-button").count()
    await seen.page.keyboard.press("Enter")
    await seen.page.locator(".why-button").nth(answers).wait_for()


async def _remembers(seen: Watched, *texts: str) -> None:
    """Wait until exactly these memories are listed, in any order."""
    await seen.open("known")
    lines = seen.page.locator("main article p")
    for _ in range(60):
        if sorted(await lines.all_inner_texts()) == sorted(texts):
            return
        await seen.page.wait_for_timeout(500)
        await seen.page.reload()
        await seen.open("known")
        await seen.page.wait_for_timeout(300)
    assert sorted(await lines.all_inner_texts()) == sorted(texts)


@pytest.mark.parametrize(
    "language", [pytest.param(EN, id="en"), pytest.param(ZH, id="zh", marks=pytest.mark.soak)]
)
async def test_the_first_hour_needs_no_manual(
    browser: Browser, unconnected: ServiceProcess, model_server: ModelServer, tmp_path: Path, language: Language
) -> None:
    words = _WORDS[language.name]
    model_server.default = lambda received: _stand_in(language, received)
    async with watched(browser, unconnected.url, language=language.name) as seen:
        page = seen.page
        await seen.open()
        await _connect(page, words, model_server.base_url)
        seen.expect_faults("ERR_", "503")  # while it starts again
        shown = await (await page.request.get(f"{unconnected.url}/api/v1/model")).json()
        assert (shown["source"], shown["model"], shown["restarts"]) == ("console", "scripted", True)
        assert unconnected.text.count("Anamnesis is ready") == 2

        await _new_chat(seen, words["tell"])
        await _remembers(seen, language.dog, language.allergy)
        await _new_chat(seen, words["ask"])
        await expect(page.locator(".prose").last).to_contain_text(language.answer)
        await page.get_by_role("button", name=words["why"]).last.click()
        await expect(page.locator(".drawer")).to_contain_text(language.dog_said)
        await page.keyboard.press("Escape")

        await seen.open("known")
        line = page.locator("main article", has_text=language.dog)
        await line.get_by_role("button", name=words["wrong"]).click()
        await page.get_by_label(words["right"]).fill(language.right)
        await page.get_by_role("button", name=words["save"], exact=True).click()
        await _remembers(seen, language.right, language.allergy)

        await _new_chat(seen, words["forget"])
        change = page.locator(".change").last
        await expect(change).to_contain_text(language.allergy_said[-6:])
        forgot = page.url
        await _remembers(seen, language.right)
        await page.goto(forgot)
        await change.get_by_role("button", name=words["undo"]).click()
        await expect(change).to_have_class("change undone")
        await _remembers(seen, language.right, language.allergy)

        await seen.open("settings")
        async with page.expect_file_chooser() as choosing:
            await page.get_by_role("button", name=words["archive"]).click()
        await (await choosing.value).set_files(written(tmp_path, "chatgpt", EXPORTS["chatgpt"], zipped=True))
        await expect(page.locator(".conversations")).to_contain_text("Bruno 🐕")

        await seen.open("chat")
        given = FilePayload(name="lease.md", mimeType="text/markdown", buffer=language.document.encode())
        await page.locator(".composer input[type=file]").set_input_files([given])
        await expect(page.locator(".given .chip.good")).to_have_text("lease.md")
        await seen.ask(language.ask_rent)
        await page.locator(".sources").get_by_role("button", name="lease.md").click()
        await expect(page.get_by_role("dialog", name="lease.md")).to_contain_text("912")
        await page.keyboard.press("Escape")

        await seen.open("operations")
        corrected = page.locator("main .card", has_text=language.right.split()[-1]).first
        await corrected.get_by_role("button", name=words["undo"], exact=True).click()
        await _remembers(seen, language.dog, language.allergy)
