"""Tools as models read them: without the defaults and alternatives of Pydantic, which only cost tokens."""

from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool


def tool_schema(tool: BaseTool) -> dict[str, Any]:
    """Return a tool in the form of OpenAI's API."""
    schema = convert_to_openai_tool(tool)
    for argument in schema["function"]["parameters"].get("properties", {}).values():
        if not argument.get("default"):
            argument.pop("default", None)
        alternatives = [each for each in argument.get("anyOf", ()) if each.get("type") != "null"]
        if len(alternatives) == 1:
            del argument["anyOf"]
            argument.update(alternatives[0])
    return schema
