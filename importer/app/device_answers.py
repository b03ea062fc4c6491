"""What each device holds of a document's model: one judgement for the command line, REST and the page."""

from __future__ import annotations

from collections.abc import Iterator

from importer.app.decide import ImportRequest
from importer.app.local_evidence import snapshot_of
from importer.config_file import engine_arguments
from importer.config_file.store import StoredDocument
from importer.hub.local import AllowedFolders
from importer.hub.snapshot import mapping, text, whole
from importer.memory import shape, weights
from importer.memory.answers import DeviceAnswer, answers
from importer.memory.choose import Choice, choose
from importer.memory.devices import Device, known
from importer.memory.judgement import CONTEXT
from importer.memory.parallelism import FitRequest


def device_answers(stored: StoredDocument, places: AllowedFolders) -> Iterator[DeviceAnswer]:
    """Yield the answer for each device of the table: the document with the settings that are not of its own
    device.

    Raises DocumentError("no-receipt"), HubError and RepositoryError.
    """
    receipt = stored.need_receipt()
    request = ImportRequest.from_json(receipt.request)
    snapshot = snapshot_of(stored, places)
    read = shape.read(snapshot)
    sizes = weights.read(snapshot, read)
    asked = _request(stored, request)

    def decided(device: Device) -> Choice:
        return choose(snapshot, read, sizes, device, stored.backend, asked, request.aim)

    return answers(stored.backend, known().values(), decided)


def _request(stored: StoredDocument, request: ImportRequest) -> FitRequest:
    """Return the document's values without those that the fit chose for its own device."""
    fit = mapping(stored.need_receipt().fit)
    chosen = {*mapping(fit.get("chosen"))} - {*request.preferences.values}
    values: dict[str, object] = {key: value for key, value in stored.data.items() if key not in chosen}
    for key, inner in [*values.items()]:
        if any(one.startswith(f"{key}.") for one in chosen):
            values[key] = {k: v for k, v in mapping(inner).items() if f"{key}.{k}" not in chosen}
    if CONTEXT not in values and (wanted := whole(fit.get("wanted"), 1)):
        values[CONTEXT] = wanted
    target = mapping(stored.data.get("importer")).get("engine")
    version = text(mapping(target).get("version"))
    registry = engine_arguments.load(stored.backend, version)
    arguments = () if registry is None else registry.arguments.keys()
    return FitRequest(values, request.preferences.values.keys(), arguments, request.engine_version)
