"""``python -m benchmarks attention FOLDER``: how many models of a folder ring an alarm, by kind.

FOLDER holds the files of models, a folder each. Nothing is written. The budget is that of a reviewer: four
documents of five need nobody's attention.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gen_defaults.paths import folder, output
from importer.app.import_ import plan
from importer.app.import_request import ImportRequest
from importer.app.session import ImportSession
from importer.cli.bulk import in_order
from importer.document.attention import Attention
from importer.document.name_allocator import Names
from importer.document.store import Store
from importer.errors import ImporterError
from importer.hub.local import ANYWHERE
from importer.reasons import Reason, key_of

QUIET = 0.8  # the share of documents without a warning
Found = Sequence[Attention] | ImporterError


def main(arguments: list[str]) -> int:
    """Print one table; 1 where more than one document in five has a warning."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks attention", description=__doc__)
    parser.add_argument("folder", type=folder, metavar="FOLDER")
    parser.add_argument("--backend", default="vllm", metavar="NAME")
    parser.add_argument("--json", type=output, metavar="FILE", help="a line for each model")
    chosen = parser.parse_args(arguments)
    found = dict(warned(sorted(path for path in chosen.folder.iterdir() if path.is_dir()), chosen.backend))
    for line in table(found):
        print(line)
    if chosen.json:
        chosen.json.write_text("".join(f"{json.dumps(_row(*one))}\n" for one in found.items()), "utf-8")
    return 0 if quiet(found) >= QUIET else 1


def warned(folders: Iterable[Path], backend: str) -> Iterator[tuple[str, Found]]:
    """Yield the name of each folder with the warnings of its import, or why it has none."""
    with ImportSession() as session:
        names = Names(Store(Path("models")))

        def work(folder: Path) -> Sequence[Attention]:
            request = ImportRequest.of(str(folder), {"backend": backend})
            return plan(request, names, session, ANYWHERE).warnings

        for folder, future in in_order(folders, work):
            try:
                yield folder.name, future.result()
            except ImporterError as error:
                yield folder.name, error


def quiet(found: dict[str, Found]) -> float:
    """Return the share of the documents without a warning."""
    documents = [one for one in found.values() if not isinstance(one, ImporterError)]
    return sum(not one for one in documents) / max(1, len(documents))


def table(found: dict[str, Found]) -> Iterator[str]:
    """Yield the share, then each kind of warning and of its reason with the number of documents."""
    refused = Counter(one.kind for one in found.values() if isinstance(one, ImporterError))
    documents = len(found) - refused.total()
    yield f"{len(found)} models: {documents} documents; refused: {dict(refused.most_common())}"
    yield f"without a warning: {quiet(found):.1%} (budget {QUIET:.0%})"
    for what in (_kind, _reason):
        counts = Counter(
            name
            for one in found.values()
            if not isinstance(one, ImporterError)
            for name in {what(warning) for warning in one}
        )
        yield from (f"{count:6}  {name}" for name, count in counts.most_common())


def _kind(warning: Attention) -> str:
    return warning.kind.value


def _reason(warning: Attention) -> str:
    inner = [value for value in warning.why.fields.values() if isinstance(value, Reason)]
    return f"{warning.key}: {' > '.join(key_of(one.kind) for one in (warning.why, *inner))}"


def _row(name: str, one: Found) -> dict[str, object]:
    if isinstance(one, ImporterError):
        return {"model": name, "error": one.kind}
    return {"model": name, "warnings": [warning.to_json() for warning in one]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
