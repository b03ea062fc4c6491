"""The doctor asks the engine's own parser and validators about the arguments of a document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from importer.demo import MODEL
from importer.engines import start_check
from importer.engines.doctor import DoctorCase, model
from importer.engines.doctor.case import of_engine
from importer.engines.install import Installed
from tests.doctoring import engine, fine, skipped, stopped


def vllm(**more: Any) -> dict[str, Any]:
    return {"name": "toy", "backend": "vllm", "parameters": {"model": str(MODEL)}, **more}


def mlx(**more: Any) -> dict[str, Any]:
    return vllm(**more) | {"backend": "mlx"}


def test_a_document_without_arguments_of_its_own_asks_nobody(tmp_path: Path) -> None:
    skipped(model.arguments(engine(tmp_path, "mlx", {"mlx_lm-0.32.2": ""}, document=mlx())), "no arguments")
    assert start_check.has_arguments(vllm(options=["--max-num-seqs:4"]))
    assert start_check.has_arguments(vllm(env={"VLLM_LOGGING_LEVEL": "INFO"}))


def test_an_engine_that_is_not_installed_is_not_asked() -> None:
    case = DoctorCase(document=vllm(engine_args={"max_num_seqs": 4}))
    skipped(model.arguments(case), "not installed")


def test_an_environment_without_the_engine_gives_no_answer(tmp_path: Path) -> None:
    """The Python of the case does not exist."""
    case = engine(tmp_path, "mlx", {"mlx_lm-0.32.2": ""}, document=mlx(engine_args={"log_level": "DEBUG"}))
    skipped(model.arguments(case), "no answer")


def test_what_the_launcher_refuses_is_said_without_a_start(tmp_path: Path) -> None:
    document = mlx(engine_args={"loglevel": "DEBUG"})
    result = model.arguments(engine(tmp_path, "mlx", {"mlx_lm-0.32.2": ""}, document=document))
    stopped(result, "loglevel", "Change engine_args")


@pytest.mark.engine
@pytest.mark.xdist_group("mlx")
def test_the_parser_of_mlx_takes_its_own_arguments(mlx_engine: Installed) -> None:
    document = mlx(engine_args={"log_level": "DEBUG"})
    fine(model.arguments(of_engine("mlx", document=document, weights=MODEL)), "parser of mlx")


@pytest.mark.engine
@pytest.mark.xdist_group("vllm")
def test_the_validators_of_vllm_speak_in_their_own_words(vllm_engine: Installed) -> None:
    """The registry knows the argument; only vLLM, with the model's config, knows that it has no experts."""
    document = vllm(engine_args={"enable_expert_parallel": True})
    result = model.arguments(of_engine("vllm-cpu", document=document, weights=MODEL))
    stopped(result, "Number of experts in the model must be greater than 0", "engine_args")
