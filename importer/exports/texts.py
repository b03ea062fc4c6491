"""Texts of exports: YAML that every library reads alike, and lines of a shell, below comments."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from importer.reasons import Reason
from importer.sentences import printable, render

LINE = 100  # characters of a command that stays on one line
# Strings without quotes in any version of YAML; PyYAML quotes true, null and their like by itself.
PLAIN = re.compile(r"[A-Za-z/][\w./+@-]+", re.ASCII)


class _Dumper(yaml.SafeDumper):
    """A dumper with strings in double quotes unless they are plain words, and without aliases."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style=None if PLAIN.fullmatch(text) else '"'
    )


_Dumper.add_representer(str, _string)


def argument_value(text: str) -> Any:
    """Return the value of a server's argument for its YAML: an object or a number where the server writes the
    same word for it again, else the text.

    ``true`` and ``false`` stay texts: vllm serve drops ``false`` in silence, where the command has --no-….
    """
    try:
        value = json.loads(text)
    except ValueError:
        return text
    same = isinstance(value, dict) or (isinstance(value, int | float) and str(value) == text)
    return value if same and not isinstance(value, bool) else text


def yaml_text(data: Any, comments: Iterable[Reason]) -> str:
    """Return ``data`` as YAML below ``comments``, without invisible characters."""
    text = _dump(data, allow_unicode=True)
    if not all(c.isprintable() or c == "\n" for c in text):
        text = _dump(data, allow_unicode=False)
    return commented(comments) + text


def _dump(data: Any, *, allow_unicode: bool) -> str:
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=allow_unicode, width=2**31)
    return text


def with_variables(variables: Mapping[str, str], words: Sequence[str]) -> list[str]:
    """Return a command with its variables."""
    chosen = [f"{name}={value}" for name, value in variables.items()]
    return [*(["env", *chosen] if chosen else []), *words]


def script(comments: Iterable[Reason], command: str, first: Sequence[str] = ()) -> str:
    """Return a shell script of a command; behind ``first`` lines, it takes the place of the shell."""
    before = ["set -e", *first, "exec "] if first else [""]  # each command needs the one before
    return "#!/bin/sh\n" + commented(comments) + "\n".join(before) + command + "\n"


def command_line(words: Sequence[str]) -> str:
    """Return a command, every word quoted where needed; a long one has a line for each option."""
    line = shlex.join(words)
    if len(line) <= LINE:
        return line
    options = (f"\\\n  {shlex.quote(word)}" if word.startswith("--") else shlex.quote(word) for word in words)
    return " ".join(options)


def commented(comments: Iterable[Reason]) -> str:
    """Return comment lines; control characters in them become spaces."""
    return "".join(f"# {printable(render(one))}\n" for one in comments)
