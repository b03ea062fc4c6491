"""What of SGLang its parsers are made of, and what its server asks of the rest: defaults of its options."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .stand_ins import ABSENT, Parts, StandInUsed

CONTEXT = "sglang.srt.runtime_context"
GROUPS = ("serving", "model", "observability")  # of options that the chat server asks for
FIELDS = "sglang/srt/arg_groups/fields/{}.py"
REQUEST = "sglang/srt/managers/io_struct.py"


class Defaults(SimpleNamespace):
    """The options of a group, with the defaults of their declarations."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise StandInUsed(f"the default of SGLang's option {name}")


class Context:
    """The server's context, which is set up once and holds nothing here."""

    def override_server_args(self, **_options: object) -> Context:
        """Return itself."""
        return self

    def install(self) -> None: ...


@cache
def _defaults(file: Path) -> Defaults:
    found = Defaults()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            try:
                setattr(found, node.target.id, ast.literal_eval(node.value))
            except ValueError:
                continue
    return found


def _request(file: Path) -> type:
    """Return the engine's request with its declared fields, each ``None`` where it is not set."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    declared = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "GenerateReqInput")
    fields = (n.target for n in declared.body if isinstance(n, ast.AnnAssign))
    return type(
        declared.name, (SimpleNamespace,), {one.id: None for one in fields if isinstance(one, ast.Name)}
    )


def _tokenizer(directory: str, **_options: object) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(directory, trust_remote_code=False)


class Refusal:
    """The server's answer where it refuses a request, without the web framework."""

    def __init__(self, content: object, status_code: int = 200, **_options: object) -> None:
        self.body, self.status_code = json.dumps(content).encode(), status_code


def _given(root: Path) -> Mapping[str, object]:
    context = Context()
    given: dict[str, object] = {
        "fastapi.responses.ORJSONResponse": Refusal,
        f"{CONTEXT}.get_context": lambda: context,
        "sglang.srt.utils.hf_transformers_utils.get_tokenizer": _tokenizer,
        "sglang.srt.managers.io_struct.GenerateReqInput": _request(root / REQUEST),
    }
    for group in GROUPS:
        given[f"{CONTEXT}.get_{group}"] = partial(_defaults, root / FIELDS.format(group))
    return given


SGLANG = Parts(
    "sglang",
    re.compile(r"""sglang(\.(
        version|_version|srt|srt\.environ
        |srt\.(parser|function_call)(\..*)?
        |srt\.entrypoints|srt\.entrypoints\.(openai(\..*)?|request_headers)
        |srt\.sampling|srt\.sampling\.(sampling_params|watermarking|watermarking\.core)
        |srt\.utils\.(weight_versions|msgspec_utils|field_validators)
    ))?""", re.VERBOSE),
    "sglang/srt/entrypoints/openai/serving_chat.py",
    ABSENT,
    borrowed=("sglang.utils.convert_json_schema_to_str",),
    given=_given,
    read=(REQUEST, *map(FIELDS.format, GROUPS)),
)  # fmt: skip
