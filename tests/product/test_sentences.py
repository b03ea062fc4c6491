"""Sentences, by syntax: the rooms below the front ends name no flag, and no code reads a sentence."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable, Iterator

import pytest

from importer.cli import messages
from importer.cli.arguments import parse, running
from importer.cli.commands import COMMANDS
from importer.errors import BRANCHES, UsageError
from tests.product.test_structure import room
from tests.syntax import MODULES, nodes, written
from tools.reference import parsers

pytestmark = pytest.mark.xdist_group("syntax")  # one process parses the modules
FRONT_ENDS = {"cli", "service", "demo", "__main__", "__init__"}
FLAGS = {
    o for *_, parser in parsers() for a in parser._actions for o in a.option_strings if o.startswith("--")
}
FLAG = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(FLAGS, key=len, reverse=True))})(?![\w-])")
COMMAND = re.compile(rf"\bimporter (?:{'|'.join(COMMANDS)})\b")
ROUTE = re.compile(r"/v1/(?:configs|imports|jobs|keys|gallery|executors|audit)\b")
# Words of a command line that is another program's: an engine's arguments, and what an export gives out.
DATA = {
    "engines": re.compile(r"--[a-z][a-z-]*(=\S*)?"),
    "exports": re.compile(r"--[a-z][a-z-]*(=\S*)?|(vllm serve|sglang serve|llama-swap) --config (FILE)?"),
    # Words for ssh, kubectl and Slurm; the far end's command; scripts, which have lines.
}


def strings(module: str) -> Iterator[tuple[int, str]]:
    """Every text in the code; docstrings are none."""
    whole = nodes(MODULES[module])
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    heads = [n.body[0] for n in whole if isinstance(n, owners) and n.body]
    docs = {id(head.value) for head in heads if isinstance(head, ast.Expr)}
    for node in whole:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def named(module: str) -> Iterator[str]:
    """Flags, commands and routes of the front ends in a room below them."""
    data = DATA.get(room(module))
    for line, text in strings(module):
        given = data is not None and data.fullmatch(text.rstrip(" ")) is not None
        if (not given and (FLAG.search(text) or COMMAND.search(text))) or ROUTE.search(text):
            yield f"{module}:{line}: {text[:80]!r}"


def test_no_room_below_the_front_ends_names_a_flag_a_command_or_a_route() -> None:
    below = [m for m in MODULES if room(m) not in FRONT_ENDS]
    assert not [found for module in below for found in named(module)]


# What would be reading a sentence.
READING = {
    "startswith", "endswith", "partition", "rpartition", "split", "rsplit", "splitlines", "replace", "find",
    "rfind", "index", "rindex", "count", "removeprefix", "removesuffix", "strip", "lstrip", "rstrip",
    "casefold", "lower", "upper",
}  # fmt: skip
SEARCHES = {"search", "match", "fullmatch", "findall", "finditer", "sub"}
ATTRIBUTES = {"message", "hint", "detail"}
CALLS = {
    "render", "rendered", "sentence", "worded", "worded_field",  # of sentences
    "messages.sentence", "messages.text", "messages.line",
    "messages.hint", "messages.detail", "error.sentence", "error.message",
}  # fmt: skip
# Rooms in which a field of such a name is a reason, which becomes a sentence.
TYPED = {"engines", "exports", "memory", "chat_template"}
OURS = sorted(
    m for m in MODULES
    if (room(m) in TYPED and ".parser_worker" not in m)
    or m in {f"importer.app.{name}" for name in ("target", "study", "decide", "import_request")}
)  # fmt: skip
FIELDS = {"says", "why", "hint", "message", "reason", "remedy", "problem", "lost", "comments"}
BRANCH = re.compile(
    r"(Importer|Usage|Hub|Repository|Document|Engine|Validation|Service|Sandbox|Internal)Error|Interrupted"
)


def caught(inside: list[ast.AST]) -> set[str]:
    """The names under which errors of ours are caught."""
    handlers = (node for node in inside if isinstance(node, ast.ExceptHandler))
    return {h.name for h in handlers if h.name and h.type and BRANCH.search(written(h.type))}


def is_sentence(node: ast.AST, names: set[str], errors: set[str], fields: set[str]) -> bool:
    """Whether an expression is a sentence of ours: an error's, a rendered one, or a name for such a one."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Attribute):
        of_error = isinstance(node.value, ast.Name) and node.value.id in errors
        return node.attr in fields or (node.attr in ATTRIBUTES and of_error)
    if isinstance(node, ast.Call):
        called = written(node.func)
        of_error = called == "str" and bool(node.args) and written(node.args[0]) in errors
        chained = isinstance(node.func, ast.Attribute) and is_sentence(node.func.value, names, errors, fields)
        return called in CALLS or of_error or chained
    return False


def reading(whole: Iterable[ast.AST], fields: set[str]) -> Iterator[int]:
    """The lines on which a sentence is compared, searched, split or cut."""
    for function in [n for n in whole if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]:
        inside = [*ast.walk(function)]
        errors, names = caught(inside), set[str]()
        for node in inside:
            if isinstance(node, ast.Assign) and is_sentence(node.value, names, errors, set()):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        for node in inside:
            parts: list[ast.AST] = []
            if isinstance(node, ast.Compare):
                by_value = not all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
                parts = [node.left, *node.comparators] if by_value else []
            elif isinstance(node, ast.Subscript):
                parts = [node.value]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                module = written(node.func.value)
                searching = node.func.attr in SEARCHES or module == "re"
                parts = [*node.args] if searching else [node.func.value] if node.func.attr in READING else []
            if any(is_sentence(part, names, errors, fields) for part in parts):
                yield node.lineno


def test_no_code_reads_a_sentence() -> None:
    assert not [
        f"{module}:{line}"
        for module, path in MODULES.items()
        for line in reading(nodes(path), FIELDS if module in OURS else set())
    ]


@pytest.mark.parametrize(
    "line",
    [
        "if error.message.startswith('x'): pass", "if 'x' in str(error): pass",
        "said = render(reason)\n        if said == 'x': pass", "re.search('x', error.message)",
        "messages.text(reason).split()", "error.message[:3]",
        "said = str(error)\n        said.partition(':')", "found.reason == 'x'", "'log' in death.says",
        "PATTERN.search(sentence(kind, fields))", "re.search(BROKEN, outcome.reason)", "row.why[0]",
    ],
)  # fmt: skip
def test_reading_is_seen(line: str) -> None:
    code = f"def f(reason):\n    try:\n        pass\n    except HubError as error:\n        {line}\n"
    assert list(reading(ast.walk(ast.parse(code)), FIELDS))


@pytest.mark.parametrize(
    "line", ["print(error.message)", "found.reason.kind is Kind.A", "found.reason is None", "'x' in log_text"]
)
def test_telling_is_no_reading(line: str) -> None:
    code = f"def f():\n    try:\n        pass\n    except HubError as error:\n        {line}\n"
    assert not list(reading(ast.walk(ast.parse(code)), FIELDS))


def is_plain(field: ast.AnnAssign) -> bool:
    """Whether a field of a sentence's name may be a plain text."""
    types = {n.id for n in ast.walk(field.annotation) if isinstance(n, ast.Name)}
    return written(field.target) in FIELDS - {"says"} and "str" in types


def untyped(whole: Iterable[ast.AST]) -> Iterator[str]:
    """Fields of such a name that are plain text, and failures that are raised with a sentence of ours.

    A row of JSON is what is printed, so it holds words.
    """
    for node in whole:
        if isinstance(node, ast.ClassDef) and "TypedDict" not in map(written, node.bases):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and is_plain(line):
                    yield f"{node.name}: {written(line)}"
        elif isinstance(node, ast.Call) and written(node.func) != "Reason":
            for keyword in node.keywords:
                plain = isinstance(keyword.value, ast.JoinedStr | ast.BinOp | ast.Constant)
                if keyword.arg in FIELDS and plain:
                    yield f"{node.lineno}: {written(keyword.value)}"


def test_what_becomes_a_sentence_is_typed() -> None:
    assert not [f"{module}: {wrong}" for module in OURS for wrong in untyped(nodes(MODULES[module]))]


@pytest.mark.parametrize("code", ["class A:\n    why: str | None = None", "Fail(reason='it broke')"])
def test_a_plain_text_is_seen(code: str) -> None:
    assert list(untyped(ast.walk(ast.parse(code))))


# A command in quotes; an option of another program, where a text names one.
QUOTED = re.compile(r"(?<![\w'])'importer ([^']+)'")
OF_OTHERS = {"--gpus", "--ulimit", "--cpus", "--cpuset-cpus", "--ipc", "--shm-size"}  # of a container's start


def quoted() -> Iterator[tuple[str, str]]:
    """Every command in quotes of a front end's text, "x" for its placeholders, and where the text stands.

    The folder is an option of its own, and a backend one that there is.
    """
    for module in (m for m in MODULES if room(m) in FRONT_ENDS):
        joined = [n for n in nodes(MODULES[module]) if isinstance(n, ast.JoinedStr)]
        parts = {id(part) for one in joined for part in one.values}
        alone = (n for n in nodes(MODULES[module]) if isinstance(n, ast.Constant) and id(n) not in parts)
        texts = [(one.lineno, str(one.value)) for one in alone]
        for one in joined:
            filled = [part.value if isinstance(part, ast.Constant) else "x" for part in one.values]
            texts.append((one.lineno, "".join(map(str, filled))))
        for line, text in texts:
            for command in QUOTED.findall(text):
                chosen = re.sub(r"--backend \{\w+\}", "--backend vllm", command.replace("{dir}", ""))
                yield re.sub(r"\{\w+\}", "x", chosen), f"{module}:{line}"


def test_every_command_in_a_text_is_one() -> None:
    found = {*quoted()}
    assert {"validate NAME --fetch", "admin api-keys create NAME", "engine install x"} <= {
        c for c, _ in found
    }
    assert not [f"{place}: {command}: {wrong}" for command, place in found if (wrong := refusal(command))]


def refusal(command: str) -> str | None:
    """Why the command's own parser does not take these words; a text may leave out what is required."""
    words = [word for word in shlex.split(command) if word not in ("COMMAND", "--help", "--help-all")]
    try:
        if words:  # without any, the help is printed
            parse(words)
    except UsageError as error:
        return None if error.details["problem"] == "is required" else str(error)
    return None


def test_a_reasons_own_words_name_options_of_an_import() -> None:
    """A reason is printed by many commands, so an option of another one stands behind that command."""
    known = running(["import"]).options | OF_OTHERS
    others = {"Setting", *(branch.__name__ for branch in BRANCHES)}
    for key, text in messages.INSTEAD.items():
        if isinstance(text, str) and key.partition(".")[0] not in others:
            bare = messages.OPTION.findall(messages.QUOTED.sub("", text))
            assert {*bare} <= known, key
