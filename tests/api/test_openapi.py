"""Whatever is sent to any endpoint of the OpenAPI document, the answer is no 5xx and fits the document."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.service_process import ServiceProcess


@pytest.mark.slow
@pytest.mark.untraced
@pytest.mark.soak
def test_schemathesis_finds_no_server_error(service: ServiceProcess, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("schemathesis")
    done = subprocess.run(
        [
            str(program),
            "run",
            f"{service.url}/openapi.json",
            *("--checks", "not_a_server_error,content_type_conformance,response_schema_conformance"),
            *("--phases", "examples,coverage,fuzzing"),
            *("--max-examples", "50", "--request-timeout", "30", "--seed", "1", "--no-color"),
        ],
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Traceback" not in service.text
