"""llama.cpp's choice of a format of its own for a chat template, where it makes one.

Other templates are analysed when the server starts, and get no name: that counts as no answer here. A format
reads thoughts as well, and loses nothing where there are none: it is no choice of a reasoning parser. The
conditions are read from ``common/chat.cpp`` in the sdist of llama-cpp-python, and never compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from benchmarks.field.model import Entry, Model
from benchmarks.field.released import Released

FILE = "common/chat.cpp"
FUNCTION = re.compile(r"\ncommon_chat_try_specialized_template\(|> common_chat_try_specialized_template\(")
BRANCH = re.compile(
    r"\n    if \((?P<test>.*?)\) \{\n.*?return common_chat_params_init_(?P<name>\w+)\(", re.DOTALL
)
FIND = re.compile(r'src\.find\("(?P<text>(?:[^"\\]|\\.)*)"\)\s*(?P<is>[!=]=)\s*std::string::npos')
COMMENT = re.compile(r"//[^\n]*")


def answers(models: Sequence[Model], released: Released) -> Entry:
    """Evaluate each condition on each template, in their order."""
    version, texts = released.package("llama-cpp-python", lambda path: path.endswith(FILE))
    (source,) = (text for path, text in texts.items() if path.endswith(FILE))
    body = FUNCTION.split(source)[-1].partition("\n}\n")[0]
    branches = [(m["test"], m["name"]) for m in BRANCH.finditer(body)]
    found = ((m.model_id, next(_names(branches, m.template or ""), None)) for m in models)
    return Entry(version, {i: {"tool_parser": name} for i, name in found if name}, engine="llama.cpp")


def _names(branches: Sequence[tuple[str, str]], template: str) -> Iterator[str]:
    for test, name in branches:

        def holds(one: re.Match[str]) -> str:
            text = one["text"].encode().decode("unicode_escape")
            return str((text in template) == (one["is"] == "!="))

        words = FIND.sub(holds, COMMENT.sub("", test)).replace("&&", " and ").replace("||", " or ")
        if set(re.findall(r"\w+|[^\s\w()]", words)) <= {"True", "False", "and", "or"} and eval(f"({words})"):
            yield name
