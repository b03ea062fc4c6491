"""A document's command line, given to its engine's own parser and validators before any start."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from importer import launcher
from importer.config_file import argument_check
from importer.config_file.document import Block, Document
from importer.engines.base import Engine
from importer.engines.install import Installed
from importer.engines.process import SETTINGS
from importer.engines.vllm import is_rust, with_flags
from importer.frozen import frozen
from importer.launcher import Purpose, isolated
from importer.reasons import Reason, ReasonKind

WORKER = Path(__file__).with_name("parser_worker") / "start.py"
SECONDS = 120.0  # vLLM's modules take 6 s to import, on a busy machine 20 s
PORT = 8000  # on the command line alone: nothing listens
VLLM = ("vllm-cpu", "vllm-cuda")
AWAY = "model"  # a folder that does not exist, in place of weights that are not here


class StartReason(ReasonKind):
    """Why an engine's own parser was not asked about a document."""

    SEVERAL = "several", "several processes start with a program of their own, which was not asked"
    OTHER_FRONTEND = "other-frontend", "the frontend in Rust has a parser of its own, which was not asked"
    NO_ANSWER = "no-answer", "the parser of {engine} gave no answer in time"
    UNSURE = "unsure", "the validators ended before an answer: {words}"


@frozen
class Accepted:
    """The engine's parser takes the command line; with ``validators`` its configuration was made, too."""

    validators: bool


@frozen
class EngineRefusal:
    """The engine's own words against the command line."""

    words: str


@frozen
class NotAsked:
    """No answer, and why."""

    reason: Reason


def has_arguments(document: Document) -> bool:
    """Return whether a document sets arguments or variables of its engine beside the importer's own."""
    moved = with_flags(document) if document.get("backend") == "vllm" else document
    return bool(moved.get(argument_check.KEY) or moved.get(argument_check.ENVIRONMENT_KEY))


def ask(
    engine: Engine, installed: Installed, document: Document, weights: Path | None, *, card: bool
) -> Accepted | EngineRefusal | NotAsked:
    """Ask the engine installed there about a document; ``weights`` is its folder with ``config.json``.

    Without ``card`` the validators of vLLM leave out what only a card can answer. No code of a repository
    runs, no weight is read, and no request leaves the process. Raises DocumentError("invalid").
    """
    if is_rust(document):
        return NotAsked(Reason(StartReason.OTHER_FRONTEND))
    launch = engine.launch(_plain(document, installed), weights or Path("/", AWAY), PORT)
    if launch.arguments[0] != "-m":
        return NotAsked(Reason(StartReason.SEVERAL))
    trusted = document.get("trust_remote_code") is True  # vLLM would run the repository's code for its config
    request = {
        "words": launch.arguments[1:],
        "validators": engine.name in VLLM,
        "model": weights is not None and not trusted,
        "card": card,
    }
    answer = _answer(installed, request, launch.env)
    if answer is None:
        return NotAsked(Reason(StartReason.NO_ANSWER, engine=engine.name))
    if "refused" in answer:
        return EngineRefusal(str(answer["refused"]))
    if "unsure" in answer:
        return NotAsked(Reason(StartReason.UNSURE, words=str(answer["unsure"])))
    return Accepted(bool(request["validators"] and request["model"]))


def _plain(document: Document, installed: Installed) -> Document:
    """Return the document for the version that is installed, without the file of its template."""
    block = (document.get("importer") or Block()).copy()
    block.pop("chat_template", None)
    block["engine"] = {**(block.get("engine") or {}), "version": installed.version}
    return {"name": "model", **document, "importer": block}


def _answer(
    installed: Installed, request: Mapping[str, object], variables: Mapping[str, str]
) -> dict[str, object] | None:
    with tempfile.TemporaryDirectory(prefix="importer-start-") as folder:
        hidden = {"HF_HOME": folder, "HF_HUB_CACHE": folder, "VLLM_TARGET_DEVICE": "cpu"}
        if request["card"]:
            del hidden["VLLM_TARGET_DEVICE"]
        try:
            done = launcher.run(
                isolated(str(WORKER), python=installed.python),
                Purpose.ENGINE,
                seconds=SECONDS,
                text=json.dumps(request),
                folder=folder,
                extra={**variables, **SETTINGS, **hidden},
            )
            found = re.findall(r"^RESULT (\{.*\})$", done.output, re.MULTILINE)
            answer: dict[str, object] = json.loads(found[-1])
        except (OSError, ValueError, IndexError):
            return None
    return answer
