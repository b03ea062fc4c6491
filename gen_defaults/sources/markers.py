"""The markers in the sources of each engine's parsers: index → wheel, in parts → syntax tree → JSON.

A parser's markers are the texts in the shape of a marker in its class and in the definitions that the class
uses, through imports. What many parsers import is a tool of all, and shows no format.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gen_defaults.parser_tables import TABLES
from gen_defaults.place import ROOT, load
from gen_defaults.sources.request import SCHEMA, SourceAnswer, SourceRequest
from importer.engines.registries import PINNED
from importer.signals.template_markers import FOLDER
from importer.wheels.index import IndexFailure, Release, order

# Packages with the modules of parsers, and with what they import.
PACKAGES = {
    "vllm": ("vllm/tool_parsers/", "vllm/reasoning/", "vllm/parser/"),
    "mlx": ("mlx_lm/tool_parsers/",),
    "mlx-vlm": ("mlx_vlm/tools/parsers/",),
    "vllm-mlx": ("vllm_mlx/tool_parsers/", "vllm_mlx/reasoning/"),
    "sglang": ("sglang/srt/function_call/", "sglang/srt/parser/"),
}
MARKER = re.compile(
    r"<\|(?:open|close)\|>\w{1,40}"  # a tag spelled with three tokens
    r"|<[|｜][^<>\n()\\*+?]{1,58}[|｜]>"
    r"|</?[^<>\s/=()\\*+?\[\]{}^][^<>\s()\\*+?{}=\[\]^]{0,58}>"
    r"|<[A-Za-z_｜|:][\w:｜|]{0,40}(?: name)?="  # <function=, <invoke name=
    r"|\[/?[A-Z_]{3,24}\]|[a-z]{6,24}\[$|\]<\][a-z]+\[>\["
)
SHARED = 12  # modules that import one of no format
GROUP = re.compile(r"\(\?P<\w+>")  # names in regular expressions


def read(request: SourceRequest) -> SourceAnswer:
    """Return one file an engine: the markers in its pinned and in its newest release. Raises IndexFailure."""
    files: dict[Path, str] = {}
    for engine in PACKAGES:
        path = request.place.root / FOLDER.relative_to(ROOT) / f"{engine}.json"
        files[path] = _file(engine, request, load(path))
    return SourceAnswer(files)


def _file(engine: str, request: SourceRequest, known: Mapping[str, Any]) -> str:
    """Return the file of one engine; a name that several releases have keeps its first one."""
    sources: list[dict[str, Any]] = []
    kinds: dict[str, dict[str, dict[str, Any]]] = {"tool": {}, "reasoning": {}}
    for release in _releases(engine, request, known):
        part = request.index.part(release, lambda path: _is_needed(engine, path))
        sources.append({**release.to_json(), "read": part.digest})
        for kind, found in markers_of(engine, dict(part.texts)).items():
            for name, row in found.items():
                since = kinds[kind].get(name, {"since": release.version})["since"]
                kinds[kind][name] = {"since": since, **row}
    data = {"schema": SCHEMA, "engine": engine, "sources": sources, **kinds}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def markers_of(engine: str, texts: Mapping[str, str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return for each kind and parser its markers, in the order of its sources, and its class's names.

    Raises IndexFailure.
    """
    try:
        rows = TABLES[engine].rows(texts)
        sources = ParserSources.of(texts)
    except (SyntaxError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise IndexFailure(f"the parsers of {engine} cannot be read as expected: {error}") from None
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for kind, of_kind in rows.items():
        found[kind] = {}
        names = Counter((cls, module) for _, cls, module in of_kind)
        for name, cls, module in of_kind:
            # A reasoning parser of MLX is its pair of markers; SGLang's class may have its name behind it.
            code = cls.partition("(")[0]
            marks = sources.markers(module, code) if code.partition(".")[0].isidentifier() else (name, cls)
            found[kind][name] = {"names": names[cls, module], "markers": [*dict.fromkeys(marks)]}
    return found


@dataclass(frozen=True, slots=True)
class ParserSources:
    """The modules of an engine's parsers: top-level definitions and imported names, each by module.

    ``shared`` are modules that many others import.
    """

    definitions: Mapping[str, Mapping[str, ast.stmt]]
    imports: Mapping[str, Mapping[str, tuple[str, str]]]
    shared: frozenset[str]

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> ParserSources:
        """Return the sources by module, without those that are no Python: a parser's own was read before."""
        read = {_module(path): _tree(path, text) for path, text in texts.items() if path.endswith(".py")}
        trees = {module: tree for module, tree in read.items() if tree is not None}
        imports = {module: dict(_imports(module, tree, trees)) for module, tree in trees.items()}
        count = Counter(t for found in imports.values() for t in {target for target, _ in found.values()})
        return cls(
            {module: dict(_definitions(tree)) for module, tree in trees.items()},
            imports,
            frozenset(module for module, times in count.items() if times >= SHARED),
        )

    def _texts(self, module: str) -> dict[str, str]:
        """Return the constants of a module that are texts."""
        return {
            name: node.value.value
            for name, node in self.definitions[module].items()
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        }

    def markers(self, module: str, name: str) -> Iterator[str]:
        """Yield the markers in a definition and in the definitions that it uses, the nearest first."""
        home, _, function = name.rpartition(".")
        edge, seen = [(module, function)], set()
        if home:  # a module of MLX: its constants are the parser's as well
            edge += [(module, other) for other in self.definitions.get(module, ())]
        while edge:
            place = edge.pop(0)
            place = self.imports.get(place[0], {}).get(place[1], place)
            node = self.definitions.get(place[0], {}).get(place[1])
            if place in seen or node is None:
                continue
            seen.add(place)
            if place[0] in self.shared and not isinstance(node, ast.Assign):
                continue  # a base class or a tool of all parsers
            yield from _markers(node, self._texts(place[0]))
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            edge += [self.imports[place[0]].get(n, (place[0], n)) for n in sorted(names)]


def _releases(engine: str, request: SourceRequest, known: Mapping[str, Any]) -> list[Release]:
    package = TABLES[engine].package
    sources = {s["file"]: s for s in known.get("sources", ())}
    if request.pinned:
        return [request.same(package, source) for source in sources.values()]
    wheels = request.index.wheels(package)
    chosen = {v for v in (PINNED.get(engine), [*wheels][-1]) if v in wheels}
    return [request.dated(wheels[v], sources.get(wheels[v].file, {})) for v in sorted(chosen, key=order)]


def _is_needed(engine: str, path: str) -> bool:
    return TABLES[engine].is_needed(path) or (path.endswith(".py") and path.startswith(PACKAGES[engine]))


def _module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def _tree(path: str, text: str) -> ast.Module | None:
    try:
        return ast.parse(text, path)
    except (SyntaxError, ValueError):
        return None


def _imports(
    module: str, tree: ast.Module, trees: Mapping[str, ast.Module]
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each name that a module imports from another one here, with its place."""
    package = module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            target = f"{package}.{node.module}" if node.level == 1 and node.module else str(node.module)
            for alias in node.names:
                if target in trees and target != module:
                    yield alias.asname or alias.name, (target, alias.name)


def _definitions(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the names that a module defines at its top."""
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from ((n.id, node) for n in ast.walk(target) if isinstance(n, ast.Name))


def _markers(node: ast.stmt, known: Mapping[str, str]) -> Iterator[str]:
    """Yield the markers in the texts of a definition, docstrings aside; ``known`` fills formatted texts."""
    passed = {id(n.value) for n in ast.walk(node) if isinstance(n, ast.Expr)}
    texts: list[tuple[int, int, str]] = []
    for part in ast.walk(node):
        if isinstance(part, ast.JoinedStr):
            passed |= {id(value) for value in part.values}
            texts.append((part.lineno, part.col_offset, "".join(_filled(v, known) for v in part.values)))
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in passed:
            texts.append((part.lineno, part.col_offset, part.value))
    for *_, text in sorted(texts):
        yield from MARKER.findall(GROUP.sub("(", text).replace("\\", ""))


def _filled(part: ast.expr, known: Mapping[str, str]) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    name = part.value if isinstance(part, ast.FormattedValue) else part
    return known.get(name.id, "") if isinstance(name, ast.Name) else ""
