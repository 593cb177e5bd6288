import sys
from pathlib import Path

import pytest
from langchain_core.utils.function_calling import convert_to_openai_tool

from services.bootstrap import Services
from services.errors import ConfigurationError
from services.tools.registry import ToolRegistry
from services.tools.tool import ToolServices


def test_models_are_offered_what_a_setting_names() -> None:
    registry = ToolRegistry.of_builtin_tools(ToolServices(), ["get_current_time"])
    found = registry.get("get_current_time")
    assert found is not None
    assert found.tool in registry.for_model
    assert found.tool not in ToolRegistry.of_builtin_tools(ToolServices()).for_model
    with pytest.raises(ConfigurationError, match="ANAMNESIS_TOOLS_OFFERED names no_such_tool"):
        ToolRegistry.of_builtin_tools(ToolServices(), ["no_such_tool"])


def test_no_tool_lets_the_model_say_who_the_user_is() -> None:
    for tool in ToolRegistry.of_builtin_tools(ToolServices()).for_model:
        described = convert_to_openai_tool(tool)["function"]["parameters"]["properties"]
        assert not {"user_id", "tenant_id", "runtime"} & set(described)


async def test_who_goes_without_a_part_of_memory_goes_without_its_tools(services: Services) -> None:
    everything = {tool.name for tool in services.tools.for_model}
    without = {tool.name for tool in services.tools.with_features(["time"]).for_model}
    assert everything - without == {"remember", "search_memory"}
    assert services.tools.with_features(["core_memory", "recall", "memory_filing"]) is services.tools


async def test_only_beside_filing_a_model_is_told_that_facts_are_kept_anyway(services: Services) -> None:
    files = services.tools.with_features(["core_memory", "recall", "memory_filing"])
    without = services.tools.with_features(["core_memory", "recall"])
    assert ["kept anyway" in each.described for each in (files, without)] == [True, False]


def _installed(folder: Path, value: str) -> None:
    """A package that adds a tool, as pip leaves it."""
    (folder / "extra_tools.py").write_text(
        "from langchain_core.tools import tool\n"
        "from services.tools.tool import RegisteredTool\n"
        "@tool\ndef dice() -> str:\n    '''Throw dice.'''\n    return '4'\n"
        "def made(services):\n    return RegisteredTool(dice, asks=True)\n"
        "def none(services):\n    return None\n"
        "text = lambda services: 'text'\n"
    )
    about = folder / "extra_tools-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-tools\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[anamnesis.tools]\ndice = extra_tools:{value}\n")


@pytest.mark.parametrize(("value", "asks"), [("dice", False), ("made", True), ("none", None)])
def test_an_installed_package_adds_a_tool(
    value: str, asks: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _installed(tmp_path, value)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "extra_tools", raising=False)
    found = ToolRegistry.of_builtin_tools(ToolServices()).get("dice")
    assert (found.asks if found else None) == asks


@pytest.mark.parametrize(("value", "why"), [("missing", "does not load"), ("text", "is no tool")])
def test_an_entry_point_that_is_wrong_is_named(
    value: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _installed(tmp_path, value)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "extra_tools", raising=False)
    with pytest.raises(ConfigurationError, match=rf"dice.*{why}"):
        ToolRegistry.of_builtin_tools(ToolServices())
