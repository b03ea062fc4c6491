"""Values as YAML text, in the style of the text that they are written into."""

from __future__ import annotations

from typing import Any

import yaml

from importer.frozen import frozen

WIDTH = 100  # columns, where a new block is folded


ENDLESS = float("inf")


@frozen
class YamlStyle:
    """``step``: spaces a map is indented by; ``indented``: whether lists are indented under their keys."""

    step: int = 2
    indented: bool = False


class _Indented(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        """Indent dashes below their key, which PyYAML does not do by default."""
        super().increase_indent(flow, False)


class _OneLine(yaml.SafeDumper):
    """What has a line break or another sign that cannot be seen is quoted with escapes."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = None if value.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)


def block(data: Any, style: YamlStyle | None = None) -> str:
    """Return a map or a list in block style, ending with a line break."""
    style = style or YamlStyle()
    dumper = _Indented if style.indented else yaml.SafeDumper
    return _dump(data, dumper, indent=style.step, width=WIDTH, default_flow_style=False)


def inline(value: Any, *, flow: bool = False, quote: str | None = None) -> str:
    """Return a value on one line; ``flow``: inside of brackets; ``quote``: the sign a text is to be quoted
    with.
    """
    if isinstance(value, str) and quote is not None:
        quote = quote if value.isprintable() else '"'
        return _dump(value, yaml.SafeDumper, width=ENDLESS, default_style=quote).removesuffix("\n")
    if isinstance(value, str) and not flow:
        return _dump({"k": value}, _OneLine, width=ENDLESS).removeprefix("k:").strip(" \n")
    return _dump([value], _OneLine, width=ENDLESS, default_flow_style=True).removesuffix("\n")[1:-1]


def _dump(data: Any, dumper: type[yaml.SafeDumper], **style: Any) -> str:
    """Return nothing that a reviewer cannot see: line breaks to YAML but not to editors, marks that turn
    writing.
    """
    text = str(yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True, **style))
    if all(c.isprintable() or c == "\n" for c in text):
        return text
    return str(yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=False, **style))
