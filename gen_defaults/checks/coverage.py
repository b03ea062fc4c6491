"""Coverage: patterns and families without each other, patterns that never match, absent and unused parsers.

Rows of importer's table are tried by purpose, maker and length, in any order of the file
(gen_defaults/README.md). A pattern is shadowed where rows before it match every name that it spells out, or
where its own ``exclude`` refuses them. LocalAI tries rows in the file's order and matches any part of a name:
there a shorter pattern that stands earlier takes the longer one's names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, product

from gen_defaults.checks.finding import PARSERS, SAMPLING, CheckFinding, CheckSubject
from importer.engines.registries import PINNED, EngineParser, Registry
from importer.signals import name as pattern
from importer.signals import tables
from importer.signals.name import Name
from importer.signals.template_markers import KINDS

BESIDE = ("modes", "sources", "notes")  # maps of the sampling table beside its families


def orphans(subject: CheckSubject) -> Iterator[CheckFinding]:
    """Yield patterns without a family and families without a pattern, in both tables."""
    for file, data in ((PARSERS, subject.parsers), (SAMPLING, subject.sampling)):
        families, patterns = data["families"], data["patterns"]
        for name in patterns:
            if name not in families:
                yield CheckFinding(
                    file, name, "a pattern without a family", "add its row, or take the pattern out"
                )
        for family in families:
            if family not in patterns:
                yield CheckFinding(
                    file, family, "a family without a pattern", "add it to patterns, longest first"
                )
    for place in BESIDE:
        for family in subject.sampling.get(place, {}):
            if family not in subject.sampling["families"]:
                yield CheckFinding(
                    SAMPLING, family, f"{place} has it, but no family is called so", "take it out there"
                )


Find = Callable[[Name], str]  # the family that a name is given, or an empty text
BETWEEN = ("-", "-zz-", "-7b-")  # what stands for a star
DIGITS = ("9", "27")  # what stands for a number sign
SHADOWED_STEP = "amend the pattern, or take the row out"


def shadowed(subject: CheckSubject) -> Iterator[CheckFinding]:
    """Yield shadowed patterns of both tables, by importer's order and by LocalAI's."""
    table, sampling = subject.table, subject.sampling_table
    excluded = {row.family: row.exclude for row in table.rows}

    def parsers_of(name: Name) -> str:
        row = table.find(name)
        return "" if row is None else row.row.family

    def sampling_of(name: Name) -> str:
        row = sampling.find(name)
        return "" if row is None else row.family

    yield from _shadowed(PARSERS, excluded, parsers_of)
    yield from _shadowed(SAMPLING, {row.family: () for row in sampling.rows}, sampling_of)
    yield from _misplaced(PARSERS, subject.parsers["patterns"])
    yield from _misplaced(SAMPLING, subject.sampling["patterns"])


def _shadowed(file: str, excluded: dict[str, tuple[str, ...]], find: Find) -> Iterator[CheckFinding]:
    for family, own in excluded.items():
        winners = _winners(family, find)
        # Words that exclude a winner: with one of them in the name this row may still be tried.
        words = {word for winner in winners for word in excluded.get(winner, ())} - {*own}
        if family in winners or family in _winners(family, find, words):
            continue
        others = [winner for winner in winners if winner]
        message = f"{others[0]} is asked first" if others else "its own exclude refuses every name"
        yield CheckFinding(file, family, f"shadowed: {message}", SHADOWED_STEP)


def _winners(family: str, find: Find, words: Iterable[str] = ("",)) -> list[str]:
    """Return the families of the names that a pattern spells out, each with a word beside it, until its
    own.
    """
    winners: list[str] = []
    for name in dict.fromkeys(name for word in words for name in _names(family, word)):
        winners.append(find(name))
        if winners[-1] == family:
            break
    return winners


def _names(family: str, word: str) -> Iterator[Name]:
    org, _, bare = family.rpartition("/")
    for between, digit in product(BETWEEN, DIGITS):
        for text in (f"{bare}-{word}", f"{word}-{bare}") if word else (bare,):
            yield Name(org, text.replace("*", between).replace("#", digit))


def _misplaced(file: str, patterns: list[str]) -> Iterator[CheckFinding]:
    """Yield patterns that LocalAI would try too late."""
    for before, after in pairwise(patterns):
        if pattern.length(after) > pattern.length(before):
            message = f"it stands after {before}, which is shorter, and LocalAI asks in the file's order"
            yield CheckFinding(file, after, message, "put the longest first")


def absent(subject: CheckSubject) -> Iterator[CheckFinding]:
    """Yield every parser of the table that a registry lacks."""
    known = subject.registries
    for row in subject.table.rows if known else ():
        for field in tables.PARSERS:
            name = row.parsers.get(field)
            having = [r for r in known if name is not None and r.has(KINDS[field], name)]
            if name is not None and known[-1] not in having:
                yield _finding(row.family, field, name, having, known)
            elif name is not None and any(_is_pinned(r) and r not in having for r in known):
                yield _too_new(row.family, field, name, having[0])


def _is_pinned(registry: Registry) -> bool:
    """Return whether it is the version whose names the table has."""
    return registry.version == PINNED.get(registry.engine)


def _too_new(family: str, field: str, name: str, first: Registry) -> CheckFinding:
    message = f"the {field.replace('_', ' ')} {name} comes with {first.engine} {first.version} only"
    return CheckFinding(
        PARSERS, family, message, f"take one that {PINNED[first.engine]} has, which is installed", "note"
    )


def _finding(
    family: str, field: str, name: str, having: Sequence[Registry], known: Sequence[Registry]
) -> CheckFinding:
    newest, word = known[-1], field.replace("_", " ")
    near = ", ".join(newest.near(KINDS[field], name))
    step = f"take one of {near}" if near else "look up what its format's parser is called now"
    if having:
        last = having[-1]
        message = (
            f"{last.engine} {last.version} is the last with the {word} {name}, {newest.version} has none"
        )
        return CheckFinding(PARSERS, family, message, step, "note")
    versions = ", ".join(r.version for r in known)
    return CheckFinding(PARSERS, family, f"no {newest.engine} of {versions} has a {word} {name}", step)


# A marker as parsers spell them: a tag, a word in square brackets, or either with bars.
MARKER = re.compile(r"</?[^<>\s/=][^<>\n]{0,58}>|\[/?[A-Z_]{3,24}\]")
MOST = 6  # markers that a finding names


def described(source: str, class_name: str) -> str:
    """Return the first line of the class's docstring, or an empty text."""
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            lines = (ast.get_docstring(node) or "").splitlines()
            return lines[0].strip().rstrip(".") if lines else ""
    return ""


def markers(source: str) -> tuple[str, ...]:
    """Return the markers that stand in the module's own texts, docstrings aside, in their order."""
    texts = (text.replace("\\", "") for text in _texts(_tree(source)))  # some stand in a regular expression
    marks = (m for text in texts for m in MARKER.findall(text))
    return tuple(dict.fromkeys(marks))[:MOST]


def _tree(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.parse("")


def _texts(tree: ast.Module) -> Iterator[str]:
    """Yield string constants that are not statements of their own."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings]
    for node in sorted(texts, key=lambda n: (n.lineno, n.col_offset)):
        if isinstance(node.value, str):
            yield node.value


# Parsers that no family needs, and why. Another name of a class that a row uses needs no entry.
EXEMPT = {
    ("tool_parser", "hf"): "reads what a repository's response_template says, whatever the family",
    ("reasoning_parser", "hf"): "reads what a repository's response_template says, whatever the family",
    ("reasoning_parser", "minimax_m2_append_think"): "leaves thoughts in the answer, for other clients",
}
UNUSED_STEP = "add the family that it is for, or say in gen_defaults/checks/coverage.py why none needs it"


def unused(subject: CheckSubject) -> Iterator[CheckFinding]:
    """Yield parsers of the pinned version without a row; those of newer versions as notes."""
    known = [r.version for r in subject.registries]
    own = known.index(PINNED["vllm"]) if PINNED["vllm"] in known else len(known) - 1
    reported: set[tuple[str, str]] = set()
    for registry in subject.registries[max(own, 0) :]:
        for field, entry in _unused(subject, registry):
            if (field, entry.name) not in reported:
                reported |= {(field, name) for name in (entry.name, *entry.aliases)}
                yield _unused_finding(field, entry, registry, subject, own=registry.version == known[own])


def _unused(subject: CheckSubject, registry: Registry) -> Iterator[tuple[str, EngineParser]]:
    for field, kind in KINDS.items():
        used = {row.parsers.get(field) for row in subject.table.rows}
        for name, entry in registry.entries[kind].items():
            if not used & {name, *entry.aliases} and (field, name) not in EXEMPT:
                yield field, entry


def _unused_finding(
    field: str, entry: EngineParser, registry: Registry, subject: CheckSubject, *, own: bool
) -> CheckFinding:
    word, source = field.replace("_", " "), subject.modules.get(entry.module, "")
    about = [f"class {entry.class_name} in {entry.module}", described(source, entry.class_name)]
    marks = markers(source)
    about.append(f"its format has {' '.join(marks)}" if marks else "")
    message = f"no row uses the {word} {entry.name} of {registry.engine} {registry.version}"
    known = ", ".join(filter(None, about))
    return CheckFinding(PARSERS, entry.name, f"{message} ({known})", UNUSED_STEP, "error" if own else "note")
