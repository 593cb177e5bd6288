"""The guide's search, as its pages do it: the built site, its index and the worker of its theme."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import playwright
import pytest

from tests.support.fork_server import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.process]

ENGLISH = {
    "delete a user": "operations.html#erasure",
    "erase": "api-memory.html#erase-a-user",
    "add a tool": "tools.html",
    "back up": "operations.html#backup",
    "backup": "operations.html#backup",
    "restore a backup": "operations.html#backup",
    "upgrade": "upgrade.html",
    "uninstall": "uninstall.html",
    "cost": "what-it-costs.html",
    "price": "what-it-costs.html",
    "telemetry": "what-it-costs.html",
    "change the model": "connect-a-model.html",
    "rate limit": "security.html#rate-limits",
    "docker": "deploy.html",
    "windows": "operations.html#python-versions-and-machines",
    "install": "try-it.html#start",
    "import chatgpt": "operations.html#history-from-elsewhere",
    "ollama": "connect-a-model.html#ollama",
    "encryption": "trust.html#encryption",
    "langgraph": "langgraph.html",
    "several users": "security.html#tenants-and-users",
    "forget something": "trust.html#forget-for-good",
    "alerts": "runbook/index.html",
    "streaming": "api-chat.html#the-stream",
    "reminders": "promises.html",
    "private conversations": "api-chat.html#temporary-conversations",
    "correct a fact": "how-memory-works.html#what-the-user-can-do-about-it",
    "change the port": "settings.html#where-the-service-lives",
    "local models": "connect-a-model.html#everything-else",
    "licenses": "index.html",
}
CHINESE = {
    "删除用户": "operations.html#清除用户",
    "清除": "api-memory.html#清除用户",
    "添加工具": "tools.html",
    "备份": "operations.html#备份",
    "恢复备份": "operations.html#备份",
    "升级": "upgrade.html",
    "卸载": "uninstall.html",
    "费用": "what-it-costs.html",
    "价格": "what-it-costs.html#花多少钱",
    "遥测": "what-it-costs.html",
    "换模型": "connect-a-model.html",
    "限流": "security.html#限额",
    "docker": "deploy.html",
    "windows": "operations.html#python-版本和机器",
    "安装": "try-it.html#启动",
    "导入聊天记录": "operations.html#别处的聊天记录",
    "通义千问": "connect-a-model.html#通义千问dashscope",
    "加密": "trust.html#加密",
    "langgraph": "langgraph.html",
    "忘记": "trust.html#彻底忘记",
    "控制台": "console.html",
    "日志": "operations.html#日志",
    "提醒": "promises.html",
    "API密钥": "security.html#api-密钥",
    "错误码": "api-chat.html#轮次的错误代码",
    "反向代理": "operations.html#放在代理后面",
    "删除对话": "api-conversations.html#移除对话",
    "向量模型": "connect-a-model.html#选哪个编码器",
    "许可证": "index.html",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def _found(site: Path, folder: str, queries: list[str]) -> list[list[str]]:
    node = shutil.which("node") or str(Path(playwright.__file__).parent / "driver" / "node")
    searched = subprocess.run(
        [node, str(Path(__file__).parent / "search.js"), str(site), folder],
        input=json.dumps(queries),
        capture_output=True,
        text=True,
        check=True,
    )
    assert searched.stderr == ""
    found: list[list[str]] = json.loads(searched.stdout)
    return found


@pytest.mark.parametrize(("folder", "questions"), [("", ENGLISH), ("zh", CHINESE)])
def test_the_right_page_is_found_first_and_pages_of_one_language_alone(
    site: Path, folder: str, questions: dict[str, str]
) -> None:
    assert 'role="dialog" aria-label="' in (site / folder / "index.html").read_text("utf-8")
    found = _found(site, folder, list(questions))
    wrong = {
        query: pages[:3]
        for (query, page), pages in zip(questions.items(), found, strict=True)
        if page not in pages[:1]
    }
    assert wrong == {}
    everything = [page for pages in found for page in pages]
    assert not [page for page in everything if page.startswith(("zh/", "../", "decisions/"))]
