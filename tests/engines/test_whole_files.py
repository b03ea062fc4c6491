"""Files that an engine refuses: away or cut is the machine's doing, whole is their contents'."""

from __future__ import annotations

from pathlib import Path

import pytest

from importer.engines import model_folder, start_trials
from importer.engines.deaths import ENVIRONMENT, DeathCause, Died
from importer.reasons import Reason

CAUSE = DeathCause(Reason(Died.TOKENIZER_BROKEN, words="has an empty prompt"), ENVIRONMENT)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").write_text('{"model": {}}')
    return tmp_path


def test_whole_files_are_their_contents_fault(model: Path) -> None:
    found = model_folder.judged(CAUSE, model)
    assert (found.reason.kind, found.attribution) == (Died.CONTENTS_REFUSED, "configuration")
    assert found.reason.fields["problem"] == CAUSE.reason


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_file_that_is_away_is_the_machines(model: Path, name: str) -> None:
    (model / name).unlink()
    assert model_folder.judged(CAUSE, model) == CAUSE


@pytest.mark.parametrize("data", [b'{"model": ', b"\xff\xfe{}", b""])
def test_a_cut_file_is_the_machines(model: Path, data: bytes) -> None:
    (model / "generation_config.json").write_bytes(data)
    assert model_folder.judged(CAUSE, model) == CAUSE


def test_a_parser_that_the_release_has_is_away_from_the_environment() -> None:
    away = DeathCause(Reason(Died.TOKENIZERS_PARSER, parser="json_tools"), "configuration")
    found = start_trials.half_installed(away, "mlx")
    assert (found.reason.kind, found.attribution) == (Died.NO_MODULE, "environment")
    unknown = DeathCause(Reason(Died.TOKENIZERS_PARSER, parser="nobody_has_it"), "configuration")
    assert start_trials.half_installed(unknown, "mlx") == unknown
