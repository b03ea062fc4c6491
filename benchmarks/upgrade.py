"""``python -m benchmarks upgrade [--documents N]``: another version of an engine for a whole gallery.

The gallery has N documents: those of ``--gallery FOLDER``, else imports of the templates of the tests. They
are repeated under other ids, commits and names. Some have a person's edits, some name what the version
drops, and one in a hundred cannot be read. One process judges them, and with ``--apply`` another writes them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.surroundings import bare
from importer.config_file.document_keys import digest
from importer.config_file.yaml_edit.source_map import read
from importer.hub import cache
from importer.hub.cache import CachedSnapshot
from importer.hub.listing import Listing
from importer.hub.snapshot import RepoFile
from tests import template_texts as texts
from tests.commandline import BASE

BEFORE, AFTER = "0.32.0", "vllm@0.33.0"
TEMPLATES = {
    "acme/json-calls": texts.CHATML_JSON,
    "acme/xml-calls": texts.XML_PARAMETERS,
    "acme/pythonic": texts.PYTHONIC,
    "acme/thinking": texts.OFFER + texts.SWITCHED,
}
# What a person adds to one document in so many, by the remainder of its number.
EDITS: Mapping[int, str] = {
    7: "gpu_memory_utilization: 0.8\n",
    23: "env:\n  VLLM_ROCM_MONO_DECODE: '1'\n",
    41: "engine_args:\n  speculative_config:\n    method: medusa\n",
    67: "engine_args:\n  max_num_seqs: 64\n",
}
OF = 100  # documents with these remainders
BROKEN = 99


def main(arguments: list[str]) -> int:
    """Print one line for each run; 1 where a run fails."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="importer-upgrade-") as place:
        environment = _home(options, Path(place))
        own = options.gallery or _imported(Path(place), environment)
        folder = Path(place) / "gallery"
        made = _multiplied(own, folder, options.documents)
        print(f"{made:,} documents of {len([*own.glob('*.yaml')]):,}; {options.engine}")
        for words in ([], ["--apply"]) if options.apply else ([],):
            print(_run(folder, options.engine, words, environment), flush=True)
    return 0


@dataclass(frozen=True)
class Ran:
    """One run: seconds, seconds of processors of it and its children, and its summary."""

    what: str
    seconds: float
    processors: float
    memory: float
    summary: Mapping[str, Any]

    def __str__(self) -> str:
        """As it is printed."""
        each = self.summary["documents"] / self.seconds
        counts = ("changed", "version_only", "evaluations", "unjudged", "failed", "written")
        found = ", ".join(f"{name} {self.summary[name]:,}" for name in counts)
        return (
            f"{self.what}: {self.seconds:.0f} s, {self.processors:.0f} s of processors, "
            f"{self.memory:.0f} MiB, {each:.0f} documents/s; {found}"
        )


def _run(folder: Path, engine: str, words: list[str], environment: Mapping[str, str]) -> Ran:
    command = [sys.executable, "-m", "importer", "recheck", "--engine", engine, "--all", "--json", *words]
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([*command, "--dir", str(folder)], stdout=out, env={**environment})
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
        seconds = time.perf_counter() - begun
        out.seek(0)
        last = out.read().splitlines()[-1]
    summary = json.loads(last)["summary"]
    memory = used.ru_maxrss / (1024 if sys.platform != "darwin" else 2**20)
    return Ran(" ".join(["recheck", *words]), seconds, used.ru_utime + used.ru_stime, memory, summary)


def _home(options: argparse.Namespace, place: Path) -> dict[str, str]:
    """Return the environment: the caller's home for a gallery of the caller's, else one of its own."""
    if options.gallery is not None:
        return {**os.environ}
    home = place / "home"
    os.environ["IMPORTER_HOME"] = str(home)
    return bare(IMPORTER_HOME=str(home))


def _imported(place: Path, environment: Mapping[str, str]) -> Path:
    """Return a folder with documents of small models, imported for the version before."""
    folder = place / "models"
    for repo, template in TEMPLATES.items():
        files = {**BASE, "chat_template.jinja": template}
        contents = {path: one if isinstance(one, str) else json.dumps(one) for path, one in files.items()}
        listed = tuple(RepoFile(path, len(text.encode())) for path, text in contents.items())
        cache.store(repo, "main", CachedSnapshot(Listing(repo, _commit(repo), listed, {}), contents))
        command = [
            sys.executable,
            "-m",
            "importer",
            repo,
            "--backend",
            "vllm",
            "--engine-version",
            BEFORE.partition("@")[2],
        ]
        words = ["--offline", "--no-validate", "--json", "--dir", str(folder)]
        subprocess.run([*command, *words], env={**environment}, check=True, capture_output=True)
    return folder


def _multiplied(own: Path, folder: Path, count: int) -> int:
    """Write so many documents; return their number."""
    folder.mkdir()
    sources = [*_sources(own)]
    for number in range(count):
        text, receipt = sources[number % len(sources)]
        _write(folder, number, number // len(sources), text, receipt)
    return count


def _sources(own: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(own.glob("*.yaml")):
        receipt = path.with_name(f"{path.stem}.receipt.json")
        if receipt.is_file():
            yield path.read_text("utf-8"), receipt.read_text("utf-8")


def _write(folder: Path, number: int, round_: int, text: str, record: str) -> None:
    """Write one document as the model of another owner, with a commit of its own."""
    receipt = json.loads(record)
    name = receipt["name"] if round_ == 0 else f"{receipt['name']}-{round_}"
    if round_:
        model, commit = receipt["model_id"], receipt["revision"]
        other = {model: f"twin{round_}-{model}", commit: _commit(f"{model} {round_}")}
        text, record = (_replaced(one, other) for one in (text, record))
        text = re.sub(r"(?m)^name: .*$", f"name: {name}", text)
        receipt = json.loads(record)
    data = read(text, name)
    receipt |= {"name": name, "base": text, "digest": digest(data)}
    edit = EDITS.get(number % OF, "")
    if edit and edit.partition(":")[0] in data:
        edit = ""
    path = folder / f"{name}.yaml"
    path.write_text("a: [" if number % OF == BROKEN else text + edit, "utf-8")
    path.with_name(f"{name}.receipt.json").write_text(json.dumps(receipt), "utf-8")


def _replaced(text: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(old, new)
    return text


def _commit(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks upgrade", description=__doc__)
    parser.add_argument(
        "--documents", metavar="N", type=int, default=10_000, help="how many (default: 10000)"
    )
    parser.add_argument("--engine", default=AFTER, help=f"the version (default: {AFTER})")
    parser.add_argument("--gallery", type=Path, metavar="FOLDER", help="documents of models from the Hub")
    parser.add_argument("--apply", action="store_true", help="write them in a second run")
    options = parser.parse_args(arguments)
    if options.gallery is not None and not options.gallery.is_dir():
        parser.error(f"there is no folder {options.gallery}")
    if options.documents < 1:
        parser.error("--documents must be above zero")
    return options
