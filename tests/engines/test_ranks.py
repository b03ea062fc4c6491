"""A document that asks for several devices, as each engine's command line says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from importer.engines import mlx
from importer.engines.mlx import Mlx
from importer.engines.vllm import VllmCuda
from importer.errors import DocumentError


def launched(document: dict[str, Any]) -> list[str]:
    return [*Mlx().launch({"name": "m", **document}, Path("/w"), 1234).arguments]


def test_one_process_is_started_as_ever() -> None:
    for document in ({}, {"tensor_parallel_size": 1}, {"engine_args": {"pipeline_parallel_size": 1}}):
        assert launched(document)[:3] == ["-m", "mlx_lm", "server"]


@pytest.mark.parametrize(
    ("document", "where", "last"),
    [
        ({"tensor_parallel_size": 2}, ["-n", "2", "--backend", "ring"], "1234"),
        ({"engine_args": {"pipeline_parallel_size": 4}}, ["-n", "4", "--backend", "ring"], "--pipeline"),
        ({"tensor_parallel_size": 2, "engine_args": {"distributed_executor_backend": "mpi"}},
         ["-n", "2", "--backend", "mpi"], "1234"),
    ],
)  # fmt: skip
def test_several_ranks_go_by_mlx_launch(document: dict[str, Any], where: list[str], last: str) -> None:
    words = launched(document)
    assert words[:6] == ["-c", mlx.START, *where]
    server = words[words.index("--") + 1 :]
    assert server[:3] == ["-m", "mlx_lm", "server"]
    assert words[-1] == last


def test_hosts_of_a_file_take_the_place_of_a_number(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.json"
    hosts.write_text("[]")
    words = launched({"engine_args": {"hostfile": str(hosts)}})
    assert words[2:4] == ["--hostfile", str(hosts)]
    assert "-n" not in words


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"tensor_parallel_size": "2"}, "not a number of ranks"),
        ({"engine_args": {"pipeline_parallel_size": True}}, "true or false|whole number|number of ranks"),
        (
            {"tensor_parallel_size": 2, "engine_args": {"distributed_executor_backend": "--verbose"}},
            "not one of ring, mpi",
        ),
        ({"engine_args": {"hostfile": "hosts.json"}}, "not the whole path of a file"),
        ({"engine_args": {"hostfile": "/no/such/file"}}, "not the whole path of a file"),
    ],
)
def test_what_cannot_be_meant_is_said(document: dict[str, Any], says: str) -> None:
    with pytest.raises(DocumentError, match=says):
        launched(document)


def settings(**engine_args: Any) -> list[str]:
    return VllmCuda().settings({"name": "m", "engine_args": engine_args})


@pytest.mark.parametrize("name", ["my.module.Executor", "external_launcher", 1, True])
def test_no_class_is_imported_as_an_executor(name: object) -> None:
    with pytest.raises(DocumentError, match="not one of mp, ray, uni"):
        settings(distributed_executor_backend=name)
