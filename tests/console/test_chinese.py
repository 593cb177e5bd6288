"""The console in Chinese says nothing in the service's English: on no screen, and in no refusal."""

import re
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser

from tests.console.browser import SCREENS, watched
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.slow

WORD = re.compile(r"[A-Za-z][A-Za-z_]+")
NAMES = frozenset(
    re.findall(
        r"\S+",
        """Anamnesis English API token tokens JSON UUID IANA ISO ID Enter Shift Ctrl Esc Cookie OpenAI DeepSeek
        Qwen Ollama vLLM Milvus PostgreSQL Redis ChatGPT Claude Open WebUI LibreChat mem Gemini SillyTavern
        Character AI Telegram WhatsApp Zep Letta LangMem Hindsight Markdown HTML PDF
        DOCX XLSX CSV TXT ZIP PNG JPEG GIF WebP MB KB ms curl UTC human persona default me chat memory read
        write admin key scripted small background Asia Shanghai Europe Berlin en zh CN v Responses PM AM env""",
    )
)
"""Names and units, which are the same in both languages."""
_VARIABLE = re.compile(r"ANAMNESIS_[A-Z_]+(?:=\w+)?|https?://\S+|/v1")

ASK = """async ([method, path, body]) => {
  const { send } = await import('/console/static/api.js')
  const { messageOf } = await import('/console/static/ui.js')
  try {
    const file = typeof body === 'string' && new Blob([body], { type: 'application/pdf' })
    await send(method, path, { body: file || body })
    return null
  } catch (error) {
    return [error.status, error.code, messageOf(error), error.message]
  }
}"""


def _english(text: str) -> list[str]:
    return [word for word in WORD.findall(_VARIABLE.sub(" ", text)) if word not in NAMES]


def _refused(schema: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """A request to every operation for what does not exist, and bodies that none accepts."""
    asked: list[tuple[str, str, Any]] = []
    for path, operations in schema["paths"].items():
        if not path.startswith("/api/") or path.startswith("/api/v1/ui"):
            continue
        for method, operation in operations.items():
            for blank in ("nobody", "01a22386-16c2-736b-9cd9-7d3254b16d6c"):
                named = re.sub(r"\{\w+\}", blank, path)
                bodies: list[Any] = [{"no_such_field": 1}, {"name": "", "message": 7, "limit": -1}, []]
                wanted = bodies if "requestBody" in operation else [None]
                if method != "get" or "{" in path:
                    asked += [(method.upper(), named, body) for body in wanted]
            if method == "get":
                asked.append(("GET", f"{re.sub(r'{[^}]+}', 'nobody', path)}?limit=none&after=no", None))
    return asked


async def test_no_refusal_shows_words_of_the_service(
    browser: Browser, url: str, client: httpx.AsyncClient
) -> None:
    schema = (await client.get("/openapi.json")).json()
    kept = {"/api/v1/service", "/api/v1/doctor", "/api/v1/demo"}
    async with watched(browser, url, language="zh") as seen:
        await seen.open("keys")
        shown: dict[tuple[int, str], set[str]] = {}
        for method, path, body in _refused(schema):
            if path.split("?")[0] in kept or (method == "DELETE" and path == "/api/v1/model"):
                continue
            answer = await seen.page.evaluate(ASK, [method, path, body])
            if answer is not None and 400 <= answer[0] < 500:
                assert not _english(answer[2]), (method, path, answer)
                shown.setdefault((answer[0], answer[1]), set()).add(answer[2])
        base, archive = (
            "/api/v1/knowledge-bases/notes/documents",
            "/api/v1/users/me/archive-imports?vendor=chatgpt",
        )
        await client.post("/api/v1/knowledge-bases", json={"prefix": "notes", "description": "笔记"})
        await client.post("/api/v1/chat", json={"user_id": "me", "session_id": "s", "message": "你好"})
        again = {"prefix": "notes", "description": "笔记"}
        for method, path, sent, said in (
            ("POST", "/api/v1/knowledge-bases", again, "与现有内容冲突。"),
            ("PATCH", "/api/v1/users/me", {"timezone": "Mars/Base"}, "应为 IANA 时区名，如 Asia/Shanghai"),
            ("POST", f"{base}?source=a.pdf", "text", "“文档”不被接受：应为完整的文件，内容与扩展名一致"),
            ("POST", archive, "PK\x03\x04broken", "“导出文件”不被接受：应为该产品导出的完整 ZIP 或 JSON 文件"),
        ):
            answer = await seen.page.evaluate(ASK, [method, path, sent])
            assert said in answer[2], answer
            assert not _english(answer[2]), answer
            shown.setdefault((answer[0], answer[1]), set()).add(answer[2])
        assert len(shown) >= 3, shown
        assert sum(map(len, shown.values())) >= 20, shown
        seen.expect_faults("Failed to load resource")


async def test_no_screen_shows_words_of_the_service(
    browser: Browser, url: str, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    model_server.default = Reply(["好的。"])
    async with watched(browser, url, language="zh") as seen:
        page = seen.page
        await seen.open()
        await seen.ask("记住：我的猫叫米拉。")
        await seen.ask("我的猫叫什么名字？")
        await page.locator(".why-button").last.click()
        await page.locator(".drawer .stack").wait_for()
        assert not _english(await page.locator(".drawer").inner_text())
        await page.keyboard.press("Escape")
        for status, code in ((401, None), (500, None), (400, "context_length_exceeded"), (429, None)):
            model_server.script(*[Reply(status=status, error_code=code, error_message="失败")] * 3)
            await seen.say("再说一次？")
            failure = page.locator(".turn .failure").last
            await failure.wait_for()
            assert not _english(await failure.inner_text()), status
            await seen.open()
        put = {"content": {"name": "林", "facts": ["喜欢猫"]}, "expected_version": 0}
        await client.put("/api/v1/users/me/core-memory/persona?expert=default", json=put)
        await client.post(
            "/api/v1/users/me/episodes", json={"content": "他决定种树。", "episode_type": "decision"}
        )
        for screen in SCREENS:
            await seen.open(screen)
            await page.locator(".skeleton").first.wait_for(state="detached")
            if screen == "recall":
                await page.locator("main input[type=search]").fill("我的猫")
                await page.keyboard.press("Enter")
                await page.locator(".legs").wait_for()
            assert not _english(await page.locator("body").inner_text()), screen
        seen.expect_faults("Failed to load resource")
