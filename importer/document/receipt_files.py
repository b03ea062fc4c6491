"""A receipt on disk: a small file for git, and a side file with evidence, the whole proof and raw exchanges.

The small file has two digests of each part: of its short form there, and of the whole part in the side file.
A short form with another digest, or none, was changed by hand, and is dropped. A whole part with another
digest, or none, is absent: its digests stay, so that the side file of another clone counts again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from importer.document.document_keys import digest
from importer.hub.snapshot import listed, mapping

ENDING, SIDE = ".receipt.json", ".evidence.json"
LISTS = ("evidence", "earlier")
WIDE = 160  # characters of a line
PASSED = ("pass", "not-applicable", "not-shown")
# What the small file keeps of a proof, of its verdicts, and of an outcome that passed.
OF_PROOF = ("engine", "version", "alone", "template", "needed")
OF_VERDICT = ("passed", "failed")
OF_PASSED = ("probe", "outcome", "reason", "ability")
DETAILS = ("exchanges", "lesson", "log")  # what it leaves out of any other outcome


def side_path(path: Path) -> Path:
    """Return the side file's place beside a receipt."""
    return path.with_name(path.name.removesuffix(ENDING) + SIDE)


def texts(path: Path, receipt: Mapping[str, Any]) -> dict[Path, str]:
    """Return the files of a receipt's data: the small one at ``path``, and the side file if it has parts."""
    data: dict[str, Any] = json.loads(json.dumps(receipt, default=list))
    absent, side, digests = data.pop("absent", {}), dict[str, Any](), dict[str, list[str]]()
    for key, shorten in SHORTENED.items():
        part = data.get(key)
        if not part and key not in absent:
            continue
        short = shorten(part) if part else part
        data[key], digests[key] = short, absent.get(key, [""])
        if digests[key][0] != digest(short):
            digests[key], side[key] = [digest(short), digest(part)], part
    del data["evidence"]
    files = {path: _lines({**data, "digests": digests}) + "\n"}
    return {side_path(path): _lines({"schema": 1, **side}) + "\n", **files} if side else files


def whole(small: Mapping[str, Any], side: object) -> tuple[dict[str, Any], list[str]]:
    """Return a receipt's data, each part from the side file where that has its digest, and the endings of
    files with anything that was not read: a part that was changed by hand, or is of another receipt.

    ``absent`` in the data has the digests of parts without their details. Raises ValueError.
    """
    data, more = {"evidence": [], **small}, {k: v for k, v in mapping(side).items() if k != "schema"}
    absent, unread = dict[str, list[str]](), list[str]()
    # A service gives a whole receipt in one file.
    alone = "digests" not in data and "evidence" in small
    digests = mapping(data.pop("digests", {}))
    if unknown := digests.keys() - SHORTENED.keys():
        raise ValueError(unknown)
    for key in () if alone else SHORTENED:
        if key not in digests and not data.get(key):
            continue
        both = listed(digests.get(key, ["", ""]))
        if len(both) != 2:
            raise ValueError(key)
        if digest(data.get(key)) != both[0]:
            data[key], unread = [] if key in LISTS else None, [ENDING]
        elif key in more and digest(more[key]) == both[1]:
            data[key] = more.pop(key)
        else:
            absent[key] = [*both]
    if data.get("proof"):
        data["proof"] = _of_each(data["proof"])
    return data | ({"absent": absent} if absent else {}), [*unread, *([SIDE] if more else [])]


def _only(record: object, keys: Iterable[str]) -> dict[str, Any]:
    found = mapping(record)
    return {key: found[key] for key in keys if key in found}


def _proof(proof: object) -> dict[str, Any]:
    asked = mapping(mapping(proof).get("verdicts"))
    return _only(proof, OF_PROOF) | {"verdicts": {key: _alike(found) for key, found in asked.items()}}


def _alike(verdicts: object) -> list[dict[str, Any]]:
    """Return the verdicts of a key, one for all parsers that read the same."""
    groups: dict[str, dict[str, Any]] = {}
    for one in map(mapping, listed(verdicts)):
        read = _only(one, OF_VERDICT)
        groups.setdefault(digest(read), {"parsers": [], **read})["parsers"].append(one.get("parser"))
    return [*groups.values()]


def _of_each(proof: object) -> dict[str, Any]:
    """Return the proof of a small file with a verdict for each parser; a whole proof is unchanged."""
    asked = mapping(mapping(proof).get("verdicts"))
    verdicts = {
        key: [
            {**_only(one, OF_VERDICT), "parser": name} if "parsers" in one else one
            for one in map(mapping, listed(found))
            for name in listed(one.get("parsers", [""]))
        ]
        for key, found in asked.items()
    }
    return {**mapping(proof), "verdicts": verdicts}


def _run(run: object) -> dict[str, Any]:
    outcomes = [_outcome(mapping(one)) for one in listed(mapping(run).get("outcomes"))]
    return {**mapping(run), "outcomes": outcomes}


def _outcome(outcome: Mapping[str, Any]) -> dict[str, Any]:
    if outcome.get("outcome") in PASSED:
        return _only(outcome, OF_PASSED)
    return {key: value for key, value in outcome.items() if key not in DETAILS}


# Each part that the small file has in short.
SHORTENED: Mapping[str, Callable[[Any], Any]] = {
    "evidence": lambda _: [], "proof": _proof, "validation": _run, "partial": _run,
    "earlier": lambda runs: [_run(one) for one in listed(runs)],
}  # fmt: skip


def _lines(value: Any, indent: str = "") -> str:
    """Return JSON with a line for each member that fits one, so that a diff shows what changed."""
    text = json.dumps(value, ensure_ascii=False, default=list)
    if len(text) <= WIDE or not isinstance(value, Mapping | list | tuple):
        return text
    inner = f"{indent} "
    if isinstance(value, Mapping):
        members = [f"{json.dumps(k, ensure_ascii=False)}: {_lines(v, inner)}" for k, v in value.items()]
        return f"{{\n{inner}" + f",\n{inner}".join(members) + f"\n{indent}}}"
    return f"[\n{inner}" + f",\n{inner}".join(_lines(one, inner) for one in value) + f"\n{indent}]"
