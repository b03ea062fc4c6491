"""The service asked by a client that nobody wrote for it: a generator makes it of ``/openapi.json``."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.serving import PATIENCE, Service, service

__all__ = ["service"]
pytestmark = pytest.mark.slow
# What the generator is told: it knows no YAML, and takes the text as it is.
CONFIG = "content_type_overrides: {application/yaml: application/octet-stream}\npost_hooks: []\n"


class Api:
    """``api("jobs_get", id)`` is the generated function for that operation; its whole answer."""

    def __init__(self, url: str) -> None:
        made = import_module("importer_client")
        self.models, self.types = (
            import_module("importer_client.models"),
            import_module("importer_client.types"),
        )
        self.client = made.Client(
            base_url=url, raise_on_unexpected_status=True, timeout=PATIENCE, httpx_args={"trust_env": False}
        )

    def __call__(self, operation: str, *words: Any, **said: Any) -> Any:
        module = import_module(f"importer_client.api.{operation.partition('_')[0]}.{operation}")
        return module.sync_detailed(*words, client=self.client, **said)


@pytest.fixture(scope="module")
def api(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_bytes(service.client.get("/openapi.json").content)
    (folder / "config.yaml").write_text(CONFIG)
    ran = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json",
         "--config", "config.yaml", "--fail-on-warning", "--output-path", "client"],
        capture_output=True, check=False, text=True, cwd=folder, timeout=PATIENCE,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    sys.path.insert(0, str(folder / "client"))
    made = Api(service.url)
    try:
        with made.client:
            yield made
    finally:
        sys.path.remove(str(folder / "client"))
        for name in [n for n in sys.modules if n.partition(".")[0] == "importer_client"]:
            del sys.modules[name]


def ended(api: Api, service: Service, job: str) -> Any:
    """Ask until it has ended."""
    return service.wait(lambda: found if (found := api("jobs_get", job).parsed).ended_at else None)


def problem(api: Api, answer: Any, status: int, kind: str) -> Any:
    found = answer.parsed
    assert isinstance(found, api.models.Problem), found
    assert (answer.status_code, found.status, found.kind) == (status, status, kind)
    return found


@pytest.mark.nightly
def test_from_a_question_to_an_export(api: Api, service: Service) -> None:
    asked = api("imports_create", body=api.models.Import(reference="other/base", name="typed"))
    assert (asked.status_code, asked.headers["Location"]) == (202, f"/v1/jobs/{asked.parsed.id}")
    job = ended(api, service, asked.parsed.id)
    assert isinstance(job.error, api.models.Problem)
    assert job.error.kind == "ambiguous"
    chosen = job.error.candidates[0]
    assert isinstance(chosen, api.models.Candidate)
    api("jobs_retry", job.id, body=api.models.Retry(backend=chosen.backend))
    job = ended(api, service, job.id)
    assert (job.state, job.attempt, job.config) == (api.models.JobState.SUCCEEDED, 2, "typed")

    decisions = api("documents_decisions", "typed").parsed.decisions
    assert decisions["backend"]["value"] == chosen.backend
    whole = api("documents_get", "typed")
    tag = whole.headers["ETag"]
    cooler = api.models.DocumentContent.from_dict({"parameters": {"temperature": 0.25}})
    edited = api("documents_update", "typed", body=cooler, if_match=tag, why="cooler")
    assert edited.parsed.data["parameters"]["temperature"] == 0.25
    late = api("documents_update", "typed", body=cooler, if_match=tag)
    assert "version 2" in problem(api, late, 412, "precondition-failed").detail
    text = edited.parsed.text.replace("0.25", "0.3").encode()
    assert api("preview_check", "typed", body=api.types.File(io.BytesIO(text))).parsed.errors == []
    put = api(
        "documents_replace", "typed", body=api.types.File(io.BytesIO(text)), if_match=edited.headers["ETag"]
    )
    assert put.parsed.data["parameters"]["temperature"] == 0.3

    word = api.models.Approval(note="fine", digest=put.parsed.digest)
    approved = api("review_approve", "typed", body=word, if_match=put.headers["ETag"]).parsed
    assert (approved.state, approved.reason) == (
        api.models.DocumentSummaryStateType0.APPROVED,
        "it was never validated",
    )
    assert [v.action for v in api("documents_history", "typed").parsed.versions][:2] == ["approve", "edit"]
    exported = api("documents_export", "typed", "vllm-config").parsed
    assert any("0.3" in text for text in exported.files.additional_properties.values())
    listed = api("gallery_list").parsed
    assert [(i.name, i.published) for i in listed.items if i.name == "typed"] == [("typed", False)]
    events = api("jobs_events", job.id)
    assert (events.status_code, b"event: succeeded" in events.content) == (200, True)
    assert api("gallery_index").parsed.strip() == b"[]"


@pytest.mark.nightly
def test_problems_are_typed(api: Api) -> None:
    wrong = api("imports_create", body=api.models.Import(reference="a/b/c"))
    assert problem(api, wrong, 422, "bad-reference").errors[0].pointer == "/reference"
    problem(api, api("documents_get", "none"), 404, "no-such-document")
    problem(api, api("jobs_cancel", "none"), 404, "no-such-job")
    shown = api("imports_preview", body=api.models.Import(reference="other/base"))
    assert [c.backend for c in problem(api, shown, 409, "ambiguous").candidates] == ["vllm", "mlx"]
