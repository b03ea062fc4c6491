"""Several devices: two ranks of mlx-lm run here; vLLM's own parser reads what cards and hosts are told."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines import get, process_group
from importer.engines.install import Installed
from importer.engines.process import serve
from importer.engines.vllm import VllmCuda
from importer.errors import DocumentError
from tests.engines.test_engine_mlx import WEATHER, request
from tests.exports.test_exports_engine import by_vllm
from tests.recordings import RECORDINGS

__all__ = ["by_vllm"]
pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("vllm")]
PARSER = Path(__file__).parents[1] / "parse_vllm.py"
Taken = Callable[..., Any]
HERE = {"ssh": "127.0.0.1", "ips": ["127.0.0.1"]}


@pytest.fixture
def taken(vllm_engine: Installed, request: pytest.FixtureRequest) -> Taken:
    """What vLLM's own parser makes of some keys, or why it refuses the words of a start."""

    def answer(keys: Iterable[str], *words: str) -> Any:
        def ask() -> Any:
            found = request.getfixturevalue("by_vllm")("serve", "acme/model", *words)
            return {key: found["parsed"][key] for key in keys} if "parsed" in found else found["refused"]

        return RECORDINGS.answer(vllm_engine.python, PARSER.read_text(), words, sorted(keys), ask=ask)

    return answer


def servers(port: int) -> list[str]:
    """The processes that are mlx-lm's server for a port."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_text().split("\0")
            if words[1:3] == ["-m", "mlx_lm"] and str(port) in words:
                found.append(path.parent.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="counts processes as Linux lists them")
@pytest.mark.parametrize("hostfile", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_two_ranks_of_mlx_share_a_model_and_end_together(
    hostfile: bool, mlx_engine: Installed, importer_home: Path, tmp_path: Path
) -> None:
    """A server of two processes on this machine, joined by a ring; with a file of hosts, too."""
    hosts = tmp_path / "hosts.json"
    hosts.write_text(json.dumps([HERE, HERE]))
    asked: dict[str, Any] = (
        {"engine_args": {"hostfile": str(hosts)}} if hostfile else {"tensor_parallel_size": 2}
    )
    body = {"messages": [{"role": "user", "content": "What is the weather in Paris?"}], "tools": [WEATHER]}
    with serve(get("mlx"), mlx_engine.python, {"name": "m", **asked}, MODEL) as served:
        answer = request(served.port, "/v1/chat/completions", body | {"model": served.model})
        ranks = servers(served.port)
        report = served.stop()
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"location": "Paris"}
    assert (len(ranks), report.group_ended, report.port_free) == (2, True, True)
    assert servers(served.port) == []
    assert not process_group.alive(served.pid)


@pytest.mark.parametrize(
    "asked",
    [
        {"tensor_parallel_size": 4},
        {"tensor_parallel_size": 8,
         "engine_args": {"pipeline_parallel_size": 2, "distributed_executor_backend": "ray"}},
        {"engine_args": {"data_parallel_size": 8, "enable_expert_parallel": True, "enable_eplb": True,
                         "all2all_backend": "deepep_low_latency"}},
        {"tensor_parallel_size": 8,
         "engine_args": {"pipeline_parallel_size": 2, "nnodes": 2, "node_rank": 0, "master_addr": "10.0.0.1",
                         "master_port": 29600}},
        {"engine_args": {"data_parallel_size": 4, "data_parallel_size_local": 2,
                         "data_parallel_backend": "mp", "data_parallel_address": "10.0.0.1",
                         "data_parallel_rpc_port": 13345}},
        {"engine_args": {"data_parallel_size": 4, "data_parallel_size_local": 2,
                         "data_parallel_start_rank": 2, "data_parallel_hybrid_lb": True}},
        {"tensor_parallel_size": 4, "engine_args": {"decode_context_parallel_size": 2}},
    ],
)  # fmt: skip
def test_vllm_reads_what_it_is_told_of_cards_and_hosts(asked: dict[str, Any], taken: Taken) -> None:
    words = VllmCuda().settings({"name": "m", **asked})
    wanted = {**asked, **asked.get("engine_args", {})}
    expected = {k: v for k, v in wanted.items() if k != "engine_args"}
    assert taken(expected, *words) == expected


def test_vllm_refuses_what_no_version_of_it_knows(taken: Taken) -> None:
    with pytest.raises(DocumentError, match="'pigeon' is none of its"):
        VllmCuda().settings({"name": "m", "engine_args": {"all2all_backend": "pigeon"}})
    assert "pigeon" in taken({}, "--all2all-backend=pigeon")
