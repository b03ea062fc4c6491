"""The real vllm-rs with templates of strangers: limits of time and memory, loopback alone, no orphan."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from importer.engines import rust_renderer as renderer
from importer.engines.deaths import Accident
from importer.engines.parsers import Conversation
from importer.engines.tokens import Tokens
from importer.errors import EngineError
from importer.reasons import Reason
from tests.waiting import FreeTime, gone, wait_until

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("rust")]
LOOP = "{% for a in range(99999) %}{% for b in range(99999) %}BODY{% endfor %}{% endfor %}"
SPINS, GROWS = LOOP.replace("BODY", "{% set x = 1 %}"), LOOP.replace("BODY", "{{ '" + "x" * 300_000 + "' }}")
ASKED = [Conversation([{"role": "user", "content": "hi"}])] * 3
OWNER = """
import sys
from pathlib import Path
from importer.engines.tokens import Tokens
from importer.engines.parsers import Conversation
from importer.engines.rust_renderer import RustRenderer
asked = [Conversation([{"role": "user", "content": "hi"}])]
RustRenderer(Path(sys.argv[1])).render(Tokens(chat_template=sys.argv[2]), asked)
"""


@pytest.fixture(scope="module")
def path() -> Path:
    found = renderer.program()
    if found is None:
        pytest.skip("vllm-rs is not installed")
    return found


@pytest.mark.parametrize("template", [SPINS, GROWS])
def test_a_template_bomb_ends_at_a_limit(path: Path, template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renderer, "SECONDS", 3.0)
    clock, died = FreeTime(), None
    try:
        answers = renderer.RustRenderer(path).render(Tokens(chat_template=template), ASKED)
    except EngineError as error:
        died = (error.kind, template)
    else:
        refused = [a for listed in answers.values() for a in listed]
        assert all(isinstance(a, Reason) and a.kind is Accident.OVERRUN for a in refused)
    assert died in (None, ("worker-failed", GROWS))
    assert clock.seconds < 30  # three forms, each asked once


@pytest.mark.skipif(sys.platform != "linux", reason="reads the processes of another owner")
def test_it_ends_with_its_owner_and_its_folder_is_gone(path: Path, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", OWNER, str(path), SPINS]
    with subprocess.Popen(
        argv, env={**os.environ, "TMPDIR": str(tmp_path), "HF_TOKEN": "hf_secret"}
    ) as owner:
        servers = _servers(owner.pid)
        wait_until(lambda: not [*tmp_path.iterdir()])
        for server in servers:
            assert {c.laddr.ip for c in server.net_connections("inet")} == {"127.0.0.1"}
            assert server.rlimit(psutil.RLIMIT_AS)[0] == renderer.MEMORY
            assert "hf_secret" not in server.environ().values()
        owner.send_signal(signal.SIGKILL)
    wait_until(lambda: all(gone(server.pid) for server in servers))
    assert not [*tmp_path.iterdir()]


def _servers(owner: int) -> list[psutil.Process]:
    """The three running programs, once they are there."""

    def running() -> list[psutil.Process]:
        found = [p for p in psutil.Process(owner).children(recursive=True) if p.name() == "vllm-rs"]
        return found if len(found) == 3 else []

    return wait_until(running)
