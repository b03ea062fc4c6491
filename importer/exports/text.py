"""Text that other programs parse: YAML that every YAML library reads alike, shell words, comments."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from importer.messages import render
from importer.reasons import Reason

# What needs no quotes in any version of YAML; PyYAML quotes true, null and their like by itself.
PLAIN = re.compile(r"[A-Za-z/][\w./+@-]+", re.ASCII)


class _Dumper(yaml.SafeDumper):
    """Strings in double quotes unless they are plain words, and no aliases."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style=None if PLAIN.fullmatch(text) else '"'
    )


_Dumper.add_representer(str, _string)


def yaml_text(data: Any, comments: Iterable[Reason]) -> str:
    """``data`` as YAML below ``comments``; nothing in it that a reader cannot see."""
    text = _dump(data, allow_unicode=True)
    if not all(c.isprintable() or c == "\n" for c in text):
        text = _dump(data, allow_unicode=False)
    return commented(comments) + text


def _dump(data: Any, *, allow_unicode: bool) -> str:
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=allow_unicode, width=2**31)
    return text


def script(comments: Iterable[Reason], commands: Sequence[Sequence[str]]) -> str:
    """A shell script; each command on one line, every word quoted where it has to be."""
    lines = [shlex.join(words) for words in commands]
    stop = ["set -e"] if len(lines) > 1 else []  # what comes later needs what came before
    return "#!/bin/sh\n" + commented(comments) + "\n".join([*stop, *lines]) + "\n"


def commented(comments: Iterable[Reason]) -> str:
    """Comment lines; whatever they quote stays one line and steers no terminal."""
    lines = map(render, comments)
    return "".join(f"# {''.join(c if c.isprintable() else ' ' for c in line)}\n" for line in lines)
