"""Write the generated parts of the docs: ``python tools/docs.py`` (``--check`` to compare only).

``python tools/docs.py session`` runs the demo with mlx-lm and pastes what it prints into the README.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from importer.cli import messages as cli
from importer.engines import ENGINES, get
from importer.engines.base import OFFERS
from importer.engines.doctor import CHECKS
from importer.errors import BRANCHES
from importer.launcher import BASE, ENVIRONMENT, PURPOSES, Purpose
from importer.service.api import problems

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"

ERRORS = """\
# Errors and exit codes

Every failure is one sentence, a next step and an exit code; with `--json` the same stands in
`error.kind`, `error.message`, `error.hint`, over HTTP in `kind`, `detail`, `hint`. Exit code 0 means done.
The kinds stand in `importer/errors.py`, their sentences in `importer/messages/errors.py`, the next steps in
`importer/cli/messages.py` and `importer/service/messages.py`. This page is generated from them by
`python tools/docs.py`; a test keeps them alike.

## At the command line

| exit | kind | sentence | next step |
|---|---|---|---|
"""
OVER_HTTP = """
## Over HTTP

A problem's `detail` and `hint`, where a request can end so.

| status | kind | sentence | next step |
|---|---|---|---|
"""
DOCTOR = """\
# The doctor

    importer doctor                 # this machine and every engine
    importer doctor qwen3-8b        # one document: the machine, its engine, the model's folder
    importer doctor models/qwen3-8b.yaml --engine mlx --json
    importer doctor --check-token   # asks the Hub whether the token is valid

Each line is one trap: fine, a trouble with its remedy, or not applicable with the reason. A trouble *stops*
where a run would die of it or be wrong; else it is a warning. Exit code 0 means that nothing stops a run, 1
that something does. What would stop an engine that is not installed is a warning as long as no document asks
for that engine. With `--json` each check is one line: `check`, `subject`, `verdict` (`fine`, `trouble`,
`not-applicable`), `says`, `remedy`, `stops`, `part` (`environment`, `configuration`, `engine`).

`importer validate` looks first, before anything is fetched or started, and once more into the folder of the
weights. What stops ends it with exit code 6 and the kind `would-not-run`: every trouble and every remedy at
once, with `--json` also under `error.troubles`. A single trouble that has a kind of its own
(`engine-missing`, `port-taken`, `no-weights`) is told as that. The checks that a validation makes read files
and metadata only: no engine is imported, nobody is asked over the network, and only an environment of your
own (`IMPORTER_<ENGINE>_PYTHON`) and `nvidia-smi` are started to be asked. Measured on two cores: 0.2 s, most
of it for importing modules, and 0.02 s for the second look. Warnings are told, and the run goes on.

No test machine has an NVIDIA card or is a Mac: `driver`, `card-memory` and `metal` are tested on planted
files and figures only. The oldest drivers are those of NVIDIA's page on minor version compatibility.
`libraries` reads what the installed extension names as needed, `instructions` goes by the builds that lie in
the package and by the version of numpy.

Adding a check is a function that takes a `Case` and gives a result, one line in
`importer/engines/doctor/__init__.py`, its kinds in `kinds.py` there with their sentences in
`importer/messages/doctor.py`, and a test that plants the trap. What names a command or a flag is worded in
`DOCTOR` of `importer/cli/messages.py`. This page is generated from that
registry by `python -m tools.docs`.

| check | about | trap | what helps | before a validation |
|---|---|---|---|---|
"""
# The generated part of a page that is otherwise written by hand.
OFFERED = re.compile(r"(?<=<!-- offers -->\n).*?(?=<!-- /offers -->)", re.DOTALL)
INHERITED = re.compile(r"(?<=<!-- processes -->\n).*?(?=<!-- /processes -->)", re.DOTALL)
SESSION = re.compile(r"(?<=<!-- session -->\n```console\n).*?(?=```\n<!-- /session -->)", re.DOTALL)


def errors() -> str:
    """The tables of kinds, one for each front end."""
    ordered = [
        (branch, kind) for branch in sorted(BRANCHES, key=lambda b: b.exit_code) for kind in branch.kinds
    ]
    typed = [
        f"| {branch.exit_code} | `{kind}` | {cli.sentence_row(kind)} | {cli.hint_row(kind)} |"
        for branch, kind in ordered
        if kind in cli.HINTS
    ]
    told = [problems.explained(kind) for _, kind in ordered]
    asked = [f"| {p['status']} | `{p['kind']}` | {p['sentence']} | {p['hint']} |" for p in told if p]
    return ERRORS + "\n".join(typed) + "\n" + OVER_HTTP + "\n".join(asked) + "\n"


def doctor() -> str:
    """The table of traps."""
    rows = [
        f"| `{c.name}` | {c.about} | {c.trap} | {c.helps} | {'yes' if c.before else 'no'} |" for c in CHECKS
    ]
    return DOCTOR + "\n".join(rows) + "\n"


def engines() -> str:
    """The page on engines, its table of what their servers offer as the adapters say it."""
    adapters = {name: get(name) for name in ENGINES}
    rows = [
        f"| {says} | {' | '.join('yes' if offer in a.offers else '–' for a in adapters.values())} |"
        for offer, says in OFFERS.items()
    ]
    head = f"| | {' | '.join(adapters)} |\n|---|{'---|' * len(adapters)}"
    table = "\n".join([head, *rows]) + "\n"
    return OFFERED.sub(lambda _: table, (DOCS / "engines.md").read_text(encoding="utf-8"))


def security() -> str:
    """The page on security, its table of what processes inherit as the launcher has it."""
    who: dict[tuple[str, ...], list[str]] = {BASE: ["all but the sandbox"]}
    for purpose, names in ENVIRONMENT.items():
        own = names if purpose is Purpose.SANDBOX else tuple(n for n in names if n not in BASE)
        who.setdefault(own, []).append(PURPOSES[purpose])
    rows = [f"| {'; '.join(says)} | {', '.join(f'`{n}`' for n in names)} |" for names, says in who.items()]
    table = "\n".join(["| process | variables |", "|---|---|", *rows]) + "\n"
    return INHERITED.sub(lambda _: table, (DOCS / "security.md").read_text(encoding="utf-8"))


PAGES = {"engines.md": engines, "errors.md": errors, "doctor.md": doctor, "security.md": security}


def pasted() -> str:
    """The session as the README has it, its command in the first line."""
    found = SESSION.search(README.read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit("README.md has no session")
    return found.group()


def session() -> str:
    """The README's command, run now: what it prints, without this checkout's own place."""
    command = pasted().partition("\n")[0].removeprefix("$ ").split()
    shutil.rmtree(ROOT / ".demo", ignore_errors=True)
    argv = [sys.executable, "-m", *command]
    done = subprocess.run(
        argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    lines = [line.rstrip().replace(f"{ROOT}/", "") for line in done.stdout.splitlines()]
    return f"$ {' '.join(command)}\n" + "\n".join(line for line in lines if line) + "\n"


def main() -> int:
    """0 when every page was or is now what the code says."""
    if "session" in sys.argv:
        text = session()
        README.write_text(SESSION.sub(lambda _: text, README.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    stale = [
        n for n, make in PAGES.items() if not (DOCS / n).exists() or (DOCS / n).read_text("utf-8") != make()
    ]
    if "--check" in sys.argv:
        print("\n".join(f"stale: docs/{n}" for n in stale) or "docs are what the code says")
        return bool(stale)
    for name in stale:
        (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
