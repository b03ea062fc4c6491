"""The parsers of each engine, read from the syntax tree of its sources: name, class and module of each."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from gen_defaults import syntax
from gen_defaults.inference import Rule, branches, specs
from gen_defaults.syntax import Sources
from importer.engines.parser_worker.by_name import class_for, set_up_by_name
from importer.engines.parser_worker.markers import thinking_markers

Kind = Literal["tool", "reasoning"]
Row = tuple[str, str, str]  # name, class, module
Rows = dict[Kind, list[Row]]

VLLM_PLACES: Mapping[Kind, tuple[str, str]] = {
    "tool": ("vllm.tool_parsers", "_TOOL_PARSERS_TO_REGISTER"),
    "reasoning": ("vllm.reasoning", "_REASONING_PARSERS_TO_REGISTER"),
}
SGLANG_PLACES: Mapping[Kind, tuple[str, str]] = {
    "tool": ("sglang.srt.function_call.function_call_parser", "ToolCallParserEnum"),
    "reasoning": ("sglang.srt.parser.reasoning_parser", "DetectorMap"),
}
STATE = "mlx_vlm.server.responses_state"
LAZY = ("name", "module_path", "class_name")
MLX_FUNCTION = "parse_tool_call"


@dataclass(frozen=True, slots=True)
class Tables:
    """How to read one engine: its package, the files that are needed, and the rows that are in them.

    ``inference``  the rules by which it chooses a tool parser itself, in the order in which it tries them.
    ``chooses``    whether it does, so that there must be some.
    """

    package: str
    is_needed: Callable[[str], bool]
    rows: Callable[[Sources], Rows]
    inference: Callable[[Sources], list[Rule]] = lambda _sources: []
    chooses: bool = False


def vllm_rows(sources: Sources) -> Rows:
    """Return the lazily registered parsers of vLLM: name to (file, class) in each package's ``__init__``."""
    rows: Rows = {}
    for kind, (package, table) in VLLM_PLACES.items():
        path = _init(package)
        source = sources.get(path, "")
        entries = syntax.table(source, path, table, {})
        classes = {name: (cls, f"{package}.{file}") for name, (file, cls) in entries.items()}
        classes |= {name: (cls, module) for name, module, cls in _lazily_registered(source, path)}
        rows[kind] = sorted(((name, *place) for name, place in classes.items()), key=str)
    return rows


def _lazily_registered(source: str, path: str) -> Iterator[Row]:
    """Yield calls of ``register_lazy_module("name", "module", "Class")`` with literals alone."""
    for node in ast.walk(ast.parse(source, path)):
        if isinstance(node, ast.Call) and _called(node) == "register_lazy_module":
            arguments = dict(zip(LAZY, node.args, strict=False)) | {k.arg: k.value for k in node.keywords}
            name, module, cls = (getattr(arguments.get(word), "value", None) for word in LAZY)
            if isinstance(name, str) and isinstance(module, str) and isinstance(cls, str):
                yield name, module, cls


def state_markers(source: str) -> list[tuple[str, str]]:
    """Return the pairs that mlx-vlm's server splits at, in the order it tries them."""
    return [*syntax.table(source, _file(STATE), "_DEFAULT_OPEN_CLOSE_MARKERS", ())]


@dataclass(frozen=True, slots=True)
class Modules:
    """An engine whose tool parsers are modules with a function, and whose thinking markers are literals.

    ``markers``  the module that names them, and how they are found in its source.
    ``chooses``  the module that chooses a tool parser by the template, and how its rules are read.
    """

    tools: str
    markers: str
    pairs: Callable[[str], list[tuple[str, str]]]
    chooses: str
    rules: Callable[[str], list[Rule]]

    def is_needed(self, path: str) -> bool:
        """Return whether the file is needed."""
        named = path in {_file(self.markers), _file(self.chooses)}
        return named or _module_in(path, self.tools) is not None

    def inference(self, sources: Sources) -> list[Rule]:
        """Return its rules; none where the module has moved."""
        return self.rules(sources.get(_file(self.chooses), ""))

    def rows(self, sources: Sources) -> Rows:
        """Return its tool parser modules, and the thinking markers that it tries."""
        tools = []
        for path, source in sources.items():
            name = _module_in(path, self.tools)
            if name not in {None, "__init__"} and MLX_FUNCTION in source:  # the others help
                home = _home(source, f"{self.tools}.{name}")
                tools.append((name, f"{home.rpartition('.')[2]}.{MLX_FUNCTION}", home))
        pairs = self.pairs(sources.get(_file(self.markers), ""))
        return {"tool": sorted(tools), "reasoning": sorted((one, two, self.markers) for one, two in pairs)}


def vllm_mlx_rows(sources: Sources) -> Rows:
    """Return vllm-mlx's parsers: tool parsers by a decorator, reasoning parsers by a call in the package."""
    tools = [
        (name, node.name, module)
        for path, source in sources.items()
        if (module := _module_in(path, "vllm_mlx.tool_parsers")) is not None
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
        for name in _registered_names(node)
    ]
    reasoning = _registered_classes(sources.get(_init("vllm_mlx.reasoning"), ""))
    return {
        "tool": sorted((name, cls, f"vllm_mlx.tool_parsers.{module}") for name, cls, module in tools),
        "reasoning": sorted((name, cls, f"vllm_mlx.reasoning.{module}") for name, cls, module in reasoning),
    }


def sglang_rows(sources: Sources) -> Rows:
    """Return SGLang's parsers: name to class in a table of each kind, with the modules that it imports."""
    own = set_up_by_name(sources.get(_file(SGLANG_PLACES["reasoning"][0]), ""))
    rows: Rows = {}
    for kind, (module, table) in SGLANG_PLACES.items():
        source = sources.get(_file(module), "")
        value = syntax.assigned(source, table) if source else None
        homes = _imported(source, module) if source else {}
        entries = zip(value.keys, value.values, strict=True) if isinstance(value, ast.Dict) else ()
        rows[kind] = sorted(
            (name, class_for(name, cls, own if kind == "reasoning" else set()), homes.get(cls, module))
            for key, node in entries
            for name, cls in [(ast.literal_eval(key) if key else "", ast.unparse(node))]
        )
    return rows


def _imported(source: str, module: str) -> dict[str, str]:
    """Return imported names and the modules that they come from."""
    return {
        alias.asname or alias.name: str(node.module)
        for node in ast.parse(source, _file(module)).body
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
    }


def _registered_names(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names of ``@ToolParserManager.register_module("name")``, or of a list of names."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _called(decorator) == "register_module" and decorator.args:
            names = ast.literal_eval(decorator.args[0])
            yield from [names] if isinstance(names, str) else names


def _registered_classes(source: str) -> Iterator[Row]:
    """Yield the classes of ``register_parser("name", Class)`` with their modules."""
    tree = ast.parse(source)
    homes = {
        alias.asname or alias.name: str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) == "register_parser":
            name, cls = node.args
            if isinstance(name, ast.Constant) and isinstance(cls, ast.Name):
                yield str(name.value), cls.id, homes[cls.id]


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _file(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def _init(package: str) -> str:
    return _file(f"{package}.__init__")


def _module_in(path: str, package: str) -> str | None:
    """Return the name of the module directly in the package, or ``None``."""
    name = path.removeprefix(f"{package.replace('.', '/')}/").removesuffix(".py")
    return name if name.isidentifier() and path == _file(f"{package}.{name}") else None


def _home(source: str, module: str) -> str:
    """Return the module that defines the parser: some only hand on another's."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and any(a.name == MLX_FUNCTION for a in node.names):
            return f"{module.rpartition('.')[0]}.{node.module}" if node.level else str(node.module)
    return module


def _vllm_mlx_needed(path: str) -> bool:
    return path == _init("vllm_mlx.reasoning") or _module_in(path, "vllm_mlx.tool_parsers") is not None


MLX_LM = Modules(
    "mlx_lm.tool_parsers", "mlx_lm.tokenizer_utils", thinking_markers, "mlx_lm.tokenizer_utils", branches
)
MLX_VLM = Modules("mlx_vlm.tools.parsers", STATE, state_markers, "mlx_vlm.tools.registry", specs)
TABLES: Mapping[str, Tables] = {
    "vllm": Tables("vllm", {_init(p) for p, _ in VLLM_PLACES.values()}.__contains__, vllm_rows),
    "mlx": Tables("mlx-lm", MLX_LM.is_needed, MLX_LM.rows, MLX_LM.inference, chooses=True),
    "mlx-vlm": Tables("mlx-vlm", MLX_VLM.is_needed, MLX_VLM.rows, MLX_VLM.inference, chooses=True),
    "vllm-mlx": Tables("vllm-mlx", _vllm_mlx_needed, vllm_mlx_rows),
    "sglang": Tables("sglang", {_file(m) for m, _ in SGLANG_PLACES.values()}.__contains__, sglang_rows),
}
