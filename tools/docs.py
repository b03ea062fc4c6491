"""Write the generated parts of the docs: ``python tools/docs.py`` (``--check`` to compare only).

``python tools/docs.py session`` runs the commands of all sessions and pastes their output.
"""

from __future__ import annotations

import argparse
import csv
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from importer.cli import messages as cli
from importer.errors import BRANCHES
from importer.launcher import BASE, ENVIRONMENT, PURPOSES, Purpose
from importer.service import problems
from tools import reference

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# Pages with a session between markers.
SESSIONS = (DOCS / "start.md", DOCS / "import.md", DOCS / "failures.md")
FROM_THE_HUB = DOCS / "cards.md"  # its session reads the configuration of a model of the Hub

ERRORS = """\
# Errors and exit codes

Every failure has one sentence, a next step and an exit code. With `--json` they stand in `error.kind`,
`error.message` and `error.hint`, over HTTP in `kind`, `detail` and `hint`. Exit code 0 means done. The
kinds stand in `importer/errors.py` with their sentences and the next steps that both front ends share. The
others stand in `importer/cli/messages.py` and `importer/service/messages.py`. `python tools/docs.py`
generates this page from them; a test keeps them alike.

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
# The generated part of a page that is otherwise written by hand.
INHERITED = re.compile(r"(?<=<!-- processes -->\n).*?(?=<!-- /processes -->)", re.DOTALL)
FIGURES = re.compile(r"(?<=<!-- field -->\n).*?(?=<!-- /field -->)", re.DOTALL)
FIELD = ROOT / "benchmarks" / "field" / "results.csv"
SHOWN = {  # contestants in the readme
    "localai": "the table of LocalAI", "vllm_rust": "vLLM's Rust frontend", "sglang_auto": "SGLang's `auto`",
    "majority": "most tables of names", "importer_unknown": "importer, the family unknown",
}  # fmt: skip
SESSION = re.compile(r"(?<=<!-- session -->\n```console\n).*?(?=```\n<!-- /session -->)", re.DOTALL)


def errors() -> str:
    """Return the page of errors: the tables of kinds, one for each front end."""
    ordered = [
        (branch, kind) for branch in sorted(BRANCHES, key=lambda b: b.exit_code) for kind in branch.kinds
    ]
    typed = [
        f"| {branch.exit_code} | `{kind}` | {cli.sentence_row(kind)} | {cli.hint_row(kind)} |"
        for branch, kind in ordered
        if kind in cli.HINTS
    ]
    rows = [problems.explained(kind) for _, kind in ordered]
    over_http = [f"| {p['status']} | `{p['kind']}` | {p['sentence']} | {p['hint']} |" for p in rows if p]
    return ERRORS + "\n".join(typed) + "\n" + OVER_HTTP + "\n".join(over_http) + "\n"


def security() -> str:
    """Return the page on security with the table of the variables that processes inherit."""
    by_variables: dict[tuple[str, ...], list[str]] = {BASE: ["all but the sandbox"]}
    for purpose, names in ENVIRONMENT.items():
        own = names if purpose is Purpose.SANDBOX else tuple(n for n in names if n not in BASE)
        by_variables.setdefault(own, []).append(PURPOSES[purpose])
    rows = [
        f"| {'; '.join(purposes)} | {', '.join(f'`{n}`' for n in names)} |"
        for names, purposes in by_variables.items()
    ]
    table = "\n".join(["| process | variables |", "|---|---|", *rows]) + "\n"
    return INHERITED.sub(lambda _: table, (DOCS / "security.md").read_text(encoding="utf-8"))


def readme() -> str:
    """Return the readme with the newest figures of the benchmark of the field."""
    with FIELD.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if "files" in row["rows"] and row["contestant"] in SHOWN]
    rows.sort(key=lambda row: [*SHOWN].index(row["contestant"]))
    lines = [
        f"| {rows[0]['rows'].partition(',')[0]} | both parsers right | wrong tool parsers |",
        "|---|--:|--:|",
    ]
    for row in rows:
        wrong = 100 - float(row["tool precision %"])
        lines.append(f"| {SHOWN[row['contestant']]} | {row['%']} % | {wrong:.1f} % |")
    table = "\n".join(lines) + "\n"
    return FIGURES.sub(lambda _: table, (ROOT / "README.md").read_text(encoding="utf-8"))


PAGES = {"reference-errors.md": errors, "security.md": security, "../README.md": readme, **reference.PAGES}


def pasted(page: Path) -> str:
    """Return the session of a page."""
    match = SESSION.search(page.read_text(encoding="utf-8"))
    if match is None:
        raise SystemExit(f"{page.name} has no session")
    return match.group()


def commands(session: str) -> list[str]:
    """Return the command lines of a session."""
    return [line.removeprefix("$ ") for line in session.splitlines() if line.startswith("$ ")]


def output(command: str) -> str:
    """Run a command line; return what it prints, without this checkout's own place. A probe may fail."""
    line = re.sub(r"^importer\b", f"{shlex.quote(sys.executable)} -m importer", command)
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command}: {done.stdout}")
    lines = [line.rstrip().replace(f"{ROOT}/", "") for line in done.stdout.splitlines()]
    return "".join(f"{line}\n" for line in lines if line)


def session(page: Path) -> str:
    """Run the commands of a page's session; return the session with their output of now."""
    shutil.rmtree(ROOT / ".demo", ignore_errors=True)
    return "".join(f"$ {command}\n{output(command)}" for command in commands(pasted(page)))


def main() -> int:
    """Write or compare the pages; return 0 where they are up to date."""
    parser = argparse.ArgumentParser(prog="python tools/docs.py", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["session"], help="run the commands of the pages")
    parser.add_argument("--check", action="store_true", help="compare only; 1 where a page is stale")
    chosen = parser.parse_args()
    if chosen.what:
        for page in (*SESSIONS, FROM_THE_HUB):
            text = session(page)
            page.write_text(SESSION.sub(lambda _, new=text: new, page.read_text("utf-8")), encoding="utf-8")
        return 0
    stale = [
        n for n, make in PAGES.items() if not (DOCS / n).exists() or (DOCS / n).read_text("utf-8") != make()
    ]
    if chosen.check:
        print("\n".join(f"stale: docs/{n}" for n in stale) or "docs are what the code says")
        return bool(stale)
    for name in stale:
        (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
