"""Output of the command line: tables and progress on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from importer import sentences
from importer.cli import messages
from importer.cli.options import in_folder
from importer.cli.streams import VERBOSITY, to_stderr
from importer.progress import Step

if TYPE_CHECKING:
    import threading

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from importer.document.store import StoredDocument
    from importer.registry import Registry


value = sentences.value_text
PLAIN_WIDTH = 140  # columns where there is no terminal to ask
WORDS = (
    ("stages", "pipeline_parallel"), ("data", "data_parallel"), ("servers", "replicas"),
)  # fmt: skip
PATIENCE = 1.0  # seconds before progress is worth showing
plain = sentences.plain


def console(*, stderr: bool = False) -> Console:
    """Return a rich console; it honours NO_COLOR and writes no control characters outside a terminal."""
    from rich.console import Console

    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    width = None if terminal else PLAIN_WIDTH
    return Console(stderr=stderr, highlight=False, force_terminal=terminal, width=width)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> Table:
    """Return a borderless table; cells are plain text."""
    from importer.reports import terminal

    return terminal.table(columns, rows, title)


def note(text: str) -> None:
    """Print one line to stderr, unless errors and results alone are printed."""
    if VERBOSITY.get() >= 0:
        always(text)


def always(text: str) -> None:
    """Print one line to stderr: an error, or a result beside that of stdout."""
    to_stderr(plain(text))


def without_details(stored: StoredDocument) -> None:
    """Print to stderr what the side file of a receipt lacks."""
    if stored.no_details is not None:
        note(f"{sentences.render(stored.no_details)}.")


def typed(command: str, name: str, folder: str) -> str:
    """Return a command on a document with the options of this folder."""
    import shlex

    words = ["importer", command, name, *in_folder(folder)]
    return f"'{shlex.join(words)}'"


def line(text: str) -> None:
    """Print one line to stdout."""
    print(text)  # noqa: T201


def json_line(data: object) -> None:
    """Print data as one line of JSON to stdout."""
    from importer.document.document_keys import json_text

    printed_json(json_text(data))


def printed_json(text: str) -> None:
    """Print a line of JSON to stdout, escaped where its encoding lacks a character."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        import json

        text = json.dumps(json.loads(text))
    line(text)


def json_lines(items: Iterable[object]) -> None:
    """Print a line of JSON for each."""
    for item in items:
        json_line(item)


def parts(
    registry: Registry[Any], rows: Sequence[dict[str, Any]], columns: Sequence[str], *, json: bool
) -> None:
    """Print rows, each with the name of a part first; ``package`` names the package that adds the part."""
    packages = [registry.package(next(iter(row.values()))) for row in rows]
    owned = [row | ({"package": name} if name else {}) for row, name in zip(rows, packages, strict=True)]
    if json:
        json_lines(owned)
    else:
        heads = (*columns, "package") if any(packages) else columns
        console().print(table(heads, [tuple(map(value, row.values())) for row in owned]))
    unusable(registry)


def unusable(registry: Registry[Any]) -> None:
    """Print a warning for each part of a package that cannot be used."""
    for fault in registry.faults:
        note(f"Warning: {messages.line(fault)}")


def decisions(chosen: Mapping[str, Any]) -> Table:
    """Return a table of decisions: key, value, status, reasons; ``chosen`` in its JSON form."""
    rows = []
    for key, d in chosen.items():
        over = (f"{value(o['value'])} ({o['source']}): {o['why']}" for o in d["overruled"])
        rows.append((key, value(d["value"]), d["status"], "\n".join(d["why"]), "\n".join(over)))
    return table(("decision", "value", "status", "why", "overruled"), rows)


def fit(record: Mapping[str, Any]) -> Table | Text:
    """Return a table of the model's memory on one device, in GiB; without an estimate the reason.

    ``record`` is a receipt's fit.
    """
    from rich.text import Text

    title = f"fit: {record['message']}"
    if "estimate" not in record:
        return Text(plain(title))
    source = f"weights as the {record['weights']['source']} say: {record['weights']['why']}"
    parts = [*record["estimate"]["terms"], {"part": "together", **record["estimate"]["total"], "why": source}]
    rows = [
        (t["part"], *(f"{t[bound] / 2**30:.2f}" for bound in ("low", "likely", "high")), t["why"])
        for t in parts
    ]
    return table(("GiB of one device", "low", "likely", "high", "why"), rows, title)


def tries(changes: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """Yield a line for each change of settings that would start."""
    for change in changes:
        settings = (f"--set {key}={str(value).lower()}" for key, value in change.items())
        yield f"Try: {' '.join(settings)}"


def plans(record: Mapping[str, Any]) -> Table | None:
    """Return a table of the document's plan and the next-best ones; ``record`` is a receipt's fit."""
    from importer.memory.plans import held

    listed = record.get("plans") or ()
    if not listed:
        return None
    rows = [
        (
            layout(p),
            f"{p['max_model_len']:,}",
            held(p),
            "–" if p["step_ms"] is None else f"{p['step_ms']:.1f} ms, {p['tokens_per_second']:,}/s",
            "\n".join(p["why"]),
        )
        for p in listed
    ]
    head = ("layout", "context", "at the same time", "bound of a token, of all", "why")
    return table(head, rows, f"plans for {listed[0]['device']}: the document's, then the next-best")


def layout(plan: Mapping[str, Any]) -> str:
    """Return the layout of a plan, such as ``tensor 8, experts, data 2``."""
    words = [f"tensor {plan['tensor_parallel']}"]
    words += [f"{word} {plan[key]}" for word, key in WORDS if plan.get(key, 1) > 1]
    words += ["experts"] if plan["expert_parallel"] else []
    return ", ".join(
        words + ([f"cache {plan['kv_cache_dtype']}"] if plan["kv_cache_dtype"] != "auto" else [])
    )


def change(changed: Mapping[str, object]) -> str:
    """Return ``path: before → after`` for the JSON of a change."""
    from importer.document.document_keys import ABSENT, shown

    return (
        f"{changed['path']}: {shown(changed.get('before', ABSENT))} → {shown(changed.get('after', ABSENT))}"
    )


def explain(
    evidence: Sequence[Mapping[str, Any]], fitting: Mapping[str, Any] | None, proof: Mapping[str, Any] | None
) -> None:
    """Print the evidence, the fit and the proof of a receipt to stderr."""
    from importer.proof.result import UNREADABLE, Proof

    rows = [
        (
            e["key"],
            e["rule"],
            value(e["value"]),
            e["source"],
            e["message"] + (f"\n“{e['quote']}”" if e["quote"] else ""),
        )
        for e in evidence
        if e["rule"] != "proof"  # printed in full below the table
    ]
    out = console(stderr=True)
    out.print(table(("decision", "rule", "value", "source", "what it says"), rows, "evidence"))
    damaged = (KeyError, TypeError, ValueError, AttributeError)
    try:
        if fitting is not None:
            out.print(fit(fitting))
            if (ways := plans(fitting)) is not None:
                out.print(ways)
    except damaged:
        note("The receipt's fit cannot be read.")
    try:
        lines = [] if proof is None else list(Proof.from_json(proof).explain())
    except damaged:
        lines = [sentences.render(UNREADABLE)]
    for text in lines:
        out.print(plain(text), markup=False)


def ask(question: str) -> str | None:
    """Return what a person answers at the terminal; None at the end of input."""
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline() or None


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """Show the latest step, and a bar where it is counted, on a terminal; nothing elsewhere."""
    shown = Progress(plain(title))
    try:
        yield shown
    finally:
        shown.stop()


class Progress:
    """Callable with the latest step; shown only on a terminal and only after ``PATIENCE``."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._display: Any = None
        self._timer: threading.Timer | None = None
        if sys.stderr.isatty() and VERBOSITY.get() == 0:
            self._display = _display()
            self._task = self._display.add_task(_text(title), total=None)
            import threading

            self._timer = threading.Timer(PATIENCE, self._display.start)
            self._timer.daemon = True
            self._timer.start()

    def __call__(self, step: str) -> None:
        """Show ``step`` beside the title; as a line where each one is printed, of counted ones the last."""
        if VERBOSITY.get() > 0 and (not isinstance(step, Step) or step.done >= step.total):
            note(f"{self._title}: {step}")
        if self._display is None:
            return
        done, total = (step.done, step.total) if isinstance(step, Step) else (0, None)
        spent = getattr(step, "seconds", None)
        counted = "" if spent is None else f"{done:.0f} of {total:.0f}, {spent:.0f} s: "
        text = _text(f"{self._title}: {counted}{plain(step)}")
        self._display.update(self._task, description=text, completed=done, total=total)

    def ask(self, question: str) -> str | None:
        """Return what a person answers; the display is away meanwhile."""
        self.stop()
        answer = ask(question)
        if self._display is not None:
            self._display.start()
        return answer

    def stop(self) -> None:
        """Remove the display."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()  # it may be starting the display just now
            self._display.stop()


def _display() -> Any:
    """Return a spinner, the step, and a bar with its percentage for what is counted."""
    from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task
    from rich.progress import Progress as Display
    from rich.text import Text

    class Step(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text.assemble(task.description)

    class Bar(BarColumn):
        def render(self, task: Task) -> Any:
            return Text("") if task.total is None else super().render(task)

    class Share(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text("" if task.total is None else f"{task.percentage:.0f} %")

    columns = (SpinnerColumn(), Step(), Bar(bar_width=24), Share())
    return Display(*columns, console=console(stderr=True), transient=True)


def _text(words: str) -> Text:
    """Return text and not markup: a reference may hold brackets."""
    from rich.text import Text

    return Text(words)
