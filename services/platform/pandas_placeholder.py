"""pymilvus without pandas, which it imports only for data frames: saves 38 MB and a quarter of a second.

Run as a program it is the embedded Milvus server: `python -m services.platform.pandas_placeholder server …`.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

_MODULES = ("pandas", "pandas.api", "pandas.api.types")


class _Placeholder(ModuleType):
    """A stand-in for a module of pandas: nothing is an instance of its classes; its functions are real."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {}) if name[0].isupper() else _function(self.__name__, name)


def _function(module: str, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(import_module(module), name)(*arguments, **named)

    return call


@contextmanager
def without_pandas() -> Iterator[None]:
    """Let modules imported in this block find a placeholder for pandas, unless it is imported already."""
    if "pandas" in sys.modules:
        yield
        return
    sys.modules.update({name: _Placeholder(name) for name in _MODULES})
    try:
        yield
    finally:
        for name in _MODULES:
            del sys.modules[name]


class _NotInstalled(MetaPathFinder):
    """Makes pandas appear not installed from now on."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)


def _main() -> None:
    with without_pandas():
        from milvus_lite.cmdline import main  # noqa: PLC0415 — only as a program
    # pyarrow imports it with the first row, if it can, to check for its types.
    sys.meta_path.insert(0, _NotInstalled())
    raise SystemExit(main())


if __name__ == "__main__":
    _main()
