"""Install what lock files pin into this environment, and say how far it is: `python .ci/install.py LOCK …`.

pip itself is silent while it unpacks, which takes longer than anything else. Its messages are shown if it fails.
"""

import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from sysconfig import get_path

_LOOK_S = 0.5
_SAY_AGAIN_S = 15.0
"""Where lines cannot be written over, as in a log."""
_PINNED = re.compile(r"^[A-Za-z0-9][\w.-]*(?:\[[^\]]*\])?==\S+", re.MULTILINE)
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--require-hashes")


def main(locks: list[str]) -> int:
    """Install them; return pip's exit code."""
    pinned = len({name for lock in locks for name in _PINNED.findall(Path(lock).read_text("utf-8"))})
    before, begun = _installed(), time.monotonic()
    command = [*_PIP, *(part for lock in locks for part in ("-r", lock))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        said: list[str] = []
        reading = threading.Thread(target=lambda: said.extend(pip.stdout or ()), daemon=True)
        reading.start()
        told = begun
        while reading.is_alive():
            reading.join(_LOOK_S)
            now = time.monotonic()
            if sys.stdout.isatty() or now - told > _SAY_AGAIN_S:
                told = now
                found = sum(line.startswith(("Collecting ", "Requirement already")) for line in list(said))
                unpacked = _installed() - before
                _say(f"  {found} of {pinned} packages found, {unpacked} unpacked, {now - begun:.0f} s")
        code = pip.wait()
    end = f"  {_installed() - before} packages installed in {time.monotonic() - begun:.0f} s"
    _say("".join(["\n", *said]) if code else end)
    if sys.stdout.isatty():
        sys.stdout.write("\n")
    return code


def _installed() -> int:
    return len(list(Path(get_path("purelib")).glob("*.dist-info")))


def _say(text: str) -> None:
    over = sys.stdout.isatty()
    sys.stdout.write(f"\r\033[K{text}" if over else f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
