"""A gallery for LocalAI with one entry, whose configuration is that of the export ``localai``.

The icon of an entry: a square with the first letters of the organisation, as an address that holds it.

LocalAI's page loads an icon by its address. The Hub names the picture of an organisation only in an answer of
its own, and not whether a name is an organisation or a user. A picture of the Hub would also be requested by
each browser that opens a gallery. So the picture is importer's, and needs no request.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from urllib.parse import quote

from importer.document.document import Document
from importer.document.entry_facts import entry_facts
from importer.document.name_allocator import ending
from importer.document.receipt import Receipt
from importer.exports.base import Exported, Options, Origin
from importer.exports.kinds import Loss
from importer.exports.localai import model
from importer.exports.texts import yaml_text
from importer.frozen import frozen
from importer.reasons import Reason

WORD = re.compile(r"[A-Za-z0-9]+", re.ASCII)
SAFE = "'=/:(),.-"  # characters that an address may hold as they are


def icon(model: str) -> str:
    """Return a ``data:`` address of an SVG for the owner of ``OWNER/NAME``; the same one each time."""
    owner = model.partition("/")[0]
    words = WORD.findall(owner) or ["?"]
    letters = (words[0][0] + words[1][0] if len(words) > 1 else words[0][:2]).upper()
    hue = int.from_bytes(hashlib.sha256(owner.encode()).digest()[:2], "big") % 360
    picture = (
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 64 64'>"
        f"<rect width='64' height='64' rx='12' fill='hsl({hue},45%,35%)'/>"
        "<text x='32' y='42' font-family='sans-serif' font-size='28' text-anchor='middle' fill='white'>"
        f"{letters}</text></svg>"
    )
    return f"data:image/svg+xml,{quote(picture, safe=SAFE)}"


HUB = "https://huggingface.co"
SHA256 = 64  # hex digits
PATH = re.compile(r"(?!/|.*(?:^|/)\.\.?(?:/|$))[^\\\x00-\x1f\x7f]+")  # of a file below its folder


@frozen
class GalleryEntry:
    """A document in the form of LocalAI's galleries.

    ``item``   one item of an index, with the configuration in it; its last key is ``urls``.
    ``file``   the file that an entry may name instead, with the configuration as text.
    ``about``  what LocalAI lists, and the ``facts``; for a device alone also its name (``device``).
    ``lost``   the parts that both lack.
    """

    item: str
    file: str
    about: Mapping[str, object]
    lost: tuple[Reason, ...]


def export(document: Document, receipt: Receipt | None, _options: Options) -> Exported:
    """Return a list in the form of an index.

    An entry with an artifact has no ``files``, since LocalAI then fetches no artifact.
    """
    made = entry(document, receipt)
    return Exported({"index.yaml": made.item}, made.lost)


def entry(document: Document, receipt: Receipt | None) -> GalleryEntry:
    """Return the entry of a document; raises DocumentError as the export does."""
    origin, data, lost = model(document, receipt)
    data.pop("description", None)
    facts, own = entry_facts(document, receipt), _device(receipt)
    about: dict[str, object] = {"name": origin.name, "description": facts.text, "icon": icon(origin.model)}
    if facts.license:
        about["license"] = facts.license
    urls, tags = [f"{HUB}/{origin.hub_id}"], [*facts.tags, *own.values()]
    listed = {"tags": tags} | ({} if facts.weights is None else {"size": decimal_size(facts.weights)})
    checked = {} if facts.last_checked is None else {"last_checked": facts.last_checked}
    item: dict[str, object] = {**about, **listed, **checked, "config_file": data}
    if data.get("known_usecases"):
        item["overrides"] = {"known_usecases": data["known_usecases"]}  # where its filters look
    files, odd = _files(origin, receipt) if "artifacts" not in data else ([], [])
    lost += odd
    if files:
        item["files"] = files
    comments = [*origin.comments(), *lost]
    file = {**about, "urls": urls, "config_file": yaml_text(data, ()), **({"files": files} if files else {})}
    return GalleryEntry(
        yaml_text([item | {"urls": urls}], comments), yaml_text(file, comments),
        about | {"urls": urls, **listed, "backend": document["backend"], "facts": facts.to_json()} | own,
        tuple(lost),
    )  # fmt: skip


def decimal_size(size: int) -> str:
    """Return bytes as LocalAI reads them: ``14.5GB``, ``500MB``, ``373KB``; powers of ten."""
    for power, unit in ((10**9, "GB"), (10**6, "MB")):
        if size >= power:
            return f"{size / power:.1f}{unit}".replace(".0", "")
    return f"{max(1, round(size / 1000))}KB"


def _device(receipt: Receipt | None) -> dict[str, str]:
    """Return the device of a document for this device alone, as its name ends."""
    device = None if receipt is None else receipt.own_device
    return {} if device is None else {"device": ending(device)}


def _files(origin: Origin, receipt: Receipt | None) -> tuple[list[dict[str, str]], list[Reason]]:
    """Return the files of the commit, where LocalAI's backends look for those of the model, and the losses.

    LocalAI makes its folder of models the cache of the Hub's client (``pkg/model/initializers.go``). It
    checks a SHA-256; git's hash of a small file is none, but the file's URL names the commit.
    """
    own = receipt is not None and (receipt.model_id, receipt.revision) == (origin.hub_id, origin.revision)
    known = receipt.content_files if receipt is not None and own else None
    if known is None or origin.hub_id is None or origin.revision is None:
        return [], []
    folder = f"models--{origin.hub_id.replace('/', '--')}/snapshots/{origin.revision}"
    url = f"{HUB}/{origin.hub_id}/resolve/{origin.revision}"
    files = [
        {
            "filename": f"{folder}/{path}",
            **({"sha256": digest} if len(digest) == SHA256 else {}),
            "uri": f"{url}/{quote(path)}",
        }
        for path, digest in known.items()
        if PATH.fullmatch(path)
    ]
    return files, [Reason(Loss.FILE_NAME, file=path) for path in known if not PATH.fullmatch(path)]
