"""Every regular expression of the product."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

PACKAGES = ("anamnesis_agent", "anamnesis_client", "api", "graph", "nodes", "services", "state")
_ROOT = Path(__file__).parents[2]
_FUNCTIONS = frozenset({"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"})


@lru_cache(maxsize=1)
def product_patterns() -> dict[re.Pattern[str], str]:
    """Return the patterns in modules, and those that functions compile when they use them, each with its place."""
    found: dict[re.Pattern[str], str] = {}
    for root in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(root).__path__, f"{root}."):
            if ".migrations." not in module.name and not module.name.endswith("__main__"):
                for name, value in vars(importlib.import_module(module.name)).items():
                    for pattern in _within(value):
                        found.setdefault(pattern, f"{module.name}.{name}")
        for file in sorted((_ROOT / root).rglob("*.py")):
            for line, written in _written(file):
                found.setdefault(re.compile(written), f"{file.relative_to(_ROOT)}:{line}")
    return found


def _within(value: Any, depth: int = 0) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif depth < 3 and not isinstance(value, type):
        if is_dataclass(value):
            inner = [getattr(value, field.name, None) for field in fields(value)]
        elif isinstance(value, dict):
            inner = list(value.values())
        else:
            inner = list(value) if isinstance(value, (list, tuple, set, frozenset)) else []
        for each in inner:
            yield from _within(each, depth + 1)


def _written(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and (node.func.value.id, node.func.attr in _FUNCTIONS) == ("re", True)
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            yield node.lineno, node.args[0].value
