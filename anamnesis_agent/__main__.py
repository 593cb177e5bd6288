"""The command `anamnesis`, from a wheel and from a checkout."""

import os
import sys
from pathlib import Path

_PRIVATE_ROOT = Path(__file__).with_name("_root")
"""Folder of the service's packages in a wheel; a checkout has them beside this package."""


def main() -> None:
    """Run the command line."""
    if _PRIVATE_ROOT.is_dir():
        _import_from(_PRIVATE_ROOT)
    from api.cli.main import app  # noqa: PLC0415 — its package is found from here on

    app()


def _import_from(folder: Path) -> None:
    """Search `folder` first for packages, in this process and in the Python processes that it starts."""
    sys.path.insert(0, str(folder))
    others = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{folder}{os.pathsep}{others}" if others else str(folder)


if __name__ == "__main__":
    main()
