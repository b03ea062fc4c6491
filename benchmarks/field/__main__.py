"""``python -m benchmarks.field``: who gets new models right; ``fetch`` reads their small files from the Hub.

``--newest N`` takes the newest models that no table knows, and prints what importer could not decide.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from benchmarks.field import contestants, inputs, newest, table
from benchmarks.field.model import Model
from benchmarks.field.released import Released
from gen_defaults.paths import file, folder, output
from gen_defaults.truth import ROWS, Truth, read
from importer.errors import ImporterError

HERE = Path(__file__).parent
CONTESTANTS = tuple(sorted(module.name for module in iter_modules(contestants.__path__)))
REPOSITORIES = Path(".field")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a contestant could not be asked, or the Hub."""
    options = _options(arguments)
    try:
        if options.newest:
            return newest.main(options.newest, options.history)
        if options.command == "fetch":
            return inputs.fetch(options.truth, options.repositories, pins=options.pin)
        truths = [t for t in read(options.truth) if options.only in t.model_id]
    except ValueError as error:
        options.refuse(str(error))
    except (ImporterError, OSError) as error:
        sys.stderr.write(f"field: {error}\n")
        return 1
    if not truths:
        options.refuse(f"no row has {options.only!r} in its id")
    filed = [t for t in truths if inputs.has(options.repositories, t.model_id)]
    tables, missing = _answered(options, truths, filed)
    if not tables and not missing:
        missing.append(f"{options.repositories} has no files of these models; type 'fetch' to read them")
    for line in missing:
        sys.stderr.write(f"field: {line}\n")
    _write(tables, options.out, inputs.described(options.repositories, filed))
    return 1 if missing else 0


def _answered(
    options: argparse.Namespace, truths: Sequence[Truth], filed: Sequence[Truth]
) -> tuple[Mapping[str, Sequence[table.Line]], list[str]]:
    """Return the lines of each set of rows, and the contestants that could not be asked."""
    released = Released(options.sources)
    tables: dict[str, list[table.Line]] = {}
    missing = []
    for rows, names, repositories in (
        (filed, options.contestants, options.repositories),
        (truths, [n for n in options.contestants if _reads_names(n)], None),
    ):
        models = [Model(truth.model_id, repositories) for truth in rows]
        title = f"{len(rows)} models, {'their files' if repositories else 'names alone'}"
        for name in names if rows else ():
            try:
                entry = _module(name).answers(models, released)
            except Exception as error:  # an adapter is anybody's code, and the others go on
                missing.append(f"{name}: {type(error).__name__}: {' '.join(str(error).split())}")
                continue
            tables.setdefault(title, []).append(table.Line.of(name, entry, rows))
    return tables, missing


def _module(name: str):  # type: ignore[no-untyped-def]
    return import_module(f"{contestants.__name__}.{name}")


def _reads_names(name: str) -> bool:
    return bool(getattr(_module(name), "NAMES_ONLY", False))


def _write(tables: Mapping[str, Sequence[table.Line]], out: Path | None, inputs_: Mapping[str, str]) -> None:
    head = {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), **inputs_}
    text = f"Made by `python -m benchmarks.field` on {head['date']}.\n"
    for title, lines in tables.items():
        text += f"\n**{title}**\n\n{table.markdown(lines)}"
    sys.stdout.write(text)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        (out / "results.md").write_text(text, encoding="utf-8")
        (out / "results.csv").write_text(table.as_csv(tables), encoding="utf-8")
        (out / "results.json").write_text(table.as_json(head, tables), encoding="utf-8")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.field", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["fetch"], help="read the files of each row's commit")
    parser.add_argument("--truth", type=file, default=ROWS, metavar="FILE", help="other rows")
    parser.add_argument(
        "--repositories", type=Path, default=REPOSITORIES, metavar="DIR",
        help="the models' small files, in ORG__NAME/ (default: .field, where fetch writes them)",
    )  # fmt: skip
    parser.add_argument(
        "--sources",
        type=folder,
        metavar="DIR",
        help="released sources of others, in PACKAGE/, not asked for again",
    )
    parser.add_argument("--contestants", nargs="+", default=CONTESTANTS, choices=CONTESTANTS, metavar="NAME")
    parser.add_argument("--only", default="", metavar="TEXT", help="the rows with TEXT in their id")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write results.md, results.csv and results.json"
    )
    parser.add_argument("--pin", action="store_true", help="for fetch: write the commits into the rows")
    parser.add_argument("--newest", type=_count, metavar="N", help="the newest N models that no table knows")
    parser.add_argument("--history", type=output, metavar="FILE", help="for --newest: append one line")
    parser.set_defaults(refuse=parser.error)
    options = parser.parse_args(arguments)
    for name in ("repositories", "out"):
        path = getattr(options, name)
        made = name == "out" or options.command == "fetch" or path == REPOSITORIES
        if path and (path.is_file() or (not made and not path.is_dir())):
            parser.error(f"argument --{name}: there is no folder {path}")
    return options


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of models")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
