"""Every setting of a request that is not valid: sentence, next step and pointer name its field."""

from __future__ import annotations

from typing import Any

import pytest

from importer.errors import Setting
from importer.service.messages import FIELDS, UNREACHED
from tests.serving import Service

pytestmark = pytest.mark.slow
IMPORT = {"reference": "acme/base", "backend": "vllm"}
# Where each is given wrongly, and what is given.
WRONG: dict[Setting, tuple[str, dict[str, Any]]] = {
    Setting.BACKEND: ("/v1/imports", {"backend": "llama"}),
    Setting.DEVICE: ("/v1/imports", {"device": "999xh100-80g"}),
    Setting.ENGINE_VERSION: ("/v1/imports/preview", {"engine_version": "99"}),
    Setting.FRONTEND: ("/v1/imports/preview", {"engine_version": "0.32.0", "frontend": "rust"}),
    Setting.MEMORY: ("/v1/imports", {"memory": "3 apples"}),
    Setting.NAME: ("/v1/imports", {"name": "../x"}),
    Setting.REVISION: ("/v1/imports", {"reference": "./x", "revision": "main"}),
    Setting.SET: ("/v1/imports", {"set": {"kind": "colour"}}),
    Setting.TEMPLATE: ("/v1/imports/preview", {"template": "json"}),  # the model has no template to keep
    Setting.UNSET: ("/v1/imports", {"set": {"kind": "chat"}, "unset": ["kind"]}),
}


def test_there_is_a_case_for_each() -> None:
    assert WRONG.keys() == FIELDS.keys()
    assert FIELDS.keys() | UNREACHED == {*Setting}


@pytest.mark.parametrize("setting", list(WRONG))
def test_a_wrong_value_is_told_with_its_field(service: Service, setting: Setting) -> None:
    route, given = WRONG[setting]
    answer = service.client.post(route, json=IMPORT | given)
    said, field = answer.json(), FIELDS[setting]
    assert (answer.status_code, said["kind"]) == (422, "bad-value"), said
    (mistake,) = said["errors"]
    key = "/kind" if setting is Setting.SET else ""  # a value's key is named, too
    assert mistake["pointer"] == f"/{field}{key}"
    assert said["detail"] == f"Invalid value for {field}: {mistake['detail']}."
    assert said["hint"].endswith(f" for what {field} takes.")
    assert "--" not in answer.text


def test_an_import_that_fails_later_names_the_field_too(service: Service) -> None:
    made = service.client.post("/v1/imports", json=IMPORT | {"template": "json"})
    error = service.ended(made.json()["id"])["error"]
    assert (error["kind"], error["errors"][0]["pointer"]) == ("bad-value", "/template")
    assert error["detail"].startswith("Invalid value for template: ")


def test_an_unknown_setting_has_near_names(service: Service) -> None:
    said = service.client.post("/v1/imports", json=IMPORT | {"set": {"temprature": 1}}).json()
    assert (said["kind"], said["errors"][0]["pointer"]) == ("unknown-setting", "/set/temprature")
    assert said["detail"] == "Unknown setting 'temprature' in set."
    assert said["hint"].startswith("Did you mean 'temperature'")
