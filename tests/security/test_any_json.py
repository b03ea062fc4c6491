"""Whatever JSON a repository holds, at whatever key: a decision, or an error of ours that says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from importer.app.decide import decide_snapshot
from importer.app.import_ import build_plan
from importer.app.import_request import ImportRequest
from importer.app.session import ImportSession
from importer.decisions.decision import Preferences
from importer.document.build_text import to_text
from importer.document.name_allocator import Names
from importer.document.store import Store
from importer.errors import ImporterError, InternalError
from importer.hub import listing
from importer.hub.snapshot import RepoFile, Snapshot
from tests.any_json import COMMIT, FILES, HUB, plain, repositories
from tests.toy_shapes import TOYS

DENSE = plain(TOYS["full: grouped heads"])
MTP = {**DENSE, "num_nextn_predict_layers": 1, "auto_map": {"AutoConfig": "a.B"}}
HUGE = 10**400
BACKENDS = ("vllm", "mlx", "mlx-vlm", "vllm-mlx")


@pytest.fixture(scope="module")
def bench() -> Iterator[ImportSession]:
    with ImportSession(proves=False) as warm:
        yield warm


def snapshot(files: dict[str, Any], hub: Any) -> Snapshot:
    """As the Hub's answer and the files' texts give it."""
    told = listing.parse(json.dumps(hub).encode(), "acme/x", None)
    texts = {name: json.dumps(data) for name, data in files.items()}
    listed = (*told.files, *(RepoFile(name, len(text)) for name, text in texts.items()))
    return Snapshot("acme/x", "acme/x", COMMIT, listed, texts, info=told.info)


def hub(**words: Any) -> Any:
    return plain(HUB) | words


WEIGHT = {"global_quant_config": {"weight": {"dtype": "fp" + "9" * 5000}}}
WEIGHTS = [{"rfilename": "model.safetensors", "size": HUGE}]


@pytest.mark.slow
@given(repositories(), st.sampled_from(BACKENDS), st.sampled_from(["h100-80g", "rtx4090", None]))
@example(({"config.json": MTP | {"model_type": [True]}}, hub()), "vllm", None)
@example(({"config.json": MTP | {"model_type": {"a": 1}}}, hub()), "mlx", None)
@example(({}, hub(siblings=WEIGHTS, config=DENSE)), "vllm", None)
@example(({"config.json": DENSE}, hub(safetensors={"total": HUGE, "parameters": {"F8": HUGE}})), "mlx", None)
@example(({"config.json": DENSE | {"quantization_config": WEIGHT}}, hub()), "vllm", "h100-80g")
@example(
    ({"config.json": DENSE | {"quantization_config": {"group_size": HUGE}}}, hub()), "vllm", "2xh100-80g"
)
@example(
    ({"config.json": DENSE, "tokenizer_config.json": FILES["tokenizer_config.json"]}, hub()), "vllm", None
)
def test_any_json_is_a_decision_or_an_error_of_ours(
    bench: ImportSession, repository: Any, backend: str, device: str | None
) -> None:
    try:
        one = snapshot(*repository)
    except listing.MalformedListing:
        return
    request = ImportRequest("acme/x", preferences=Preferences({"backend": backend}), device=device)
    try:
        plan = build_plan(decide_snapshot(one, request, bench), Names(Store(Path("no/such/folder"))))
    except ImporterError as error:
        told = error
    else:
        plan.receipt().to_text().encode()
        to_text(plan.built).encode()
        json.dumps(plan.report(Path("x.yaml")))
        return
    assert told.message
    assert not isinstance(told, InternalError)
