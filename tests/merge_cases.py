"""The cases of a merge, as texts."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """What was written, what a person made of it, what would be written now; the result, or where they clash."""

    name: str
    base: str
    mine: str
    theirs: str
    result: str = ""
    conflicts: tuple[str, ...] = ()


CASES = [
    Case("only upstream changed it", "a: 1  # vendor: 1\n", "a: 1  # vendor: 1\n", "a: 2  # vendor: 2\n",
         "a: 2  # vendor: 2\n"),
    Case("only the person changed it", "a: 1  # vendor: 1\nb: 1\n", "a: 5  # vendor: 1\nb: 1\n", "a: 1  # vendor: 1\nb: 2\n",
         "a: 5  # edited in this file; imported: 1\nb: 2\n"),
    Case("upstream A, the person B, a comment on C", "a: 1\nb: 1\nc: 1\n", "a: 1\nb: 5\nc: 1  # mine\n", "a: 2\nb: 1\nc: 1\n",
         "a: 2\nb: 5\nc: 1  # mine\n"),
    Case("a person's comment on a value that upstream changed", "a: 1  # vendor: 1\n", "# why\na: 1  # mine\n", "a: 2  # vendor: 2\n",
         "# why\na: 2  # mine\n"),
    Case("a person's comment on a value that upstream removed", "a: 1  # vendor: 1\nb: 1\n", "# why\na: 1  # mine\nb: 1\n", "b: 1\n",
         "# why\n# mine\nb: 1\n"),
    Case("upstream removed it", "a: 1  # vendor: 1\nb: 1\n", "a: 1  # vendor: 1\nb: 1\n", "b: 1\n", "b: 1\n"),
    Case("the person removed it", "a: 1\nb: 1\n", "b: 1\n", "a: 1\nb: 2\n", "b: 2\n"),
    Case("both removed it", "a: 1\nb: 1\n", "b: 1\n", "b: 2\n", "b: 2\n"),
    Case("the person took our comment away", "a: 1  # vendor: 1\nb: 1\n", "a: 1\nb: 1\n", "a: 1  # table: 1\nb: 2\n",
         "a: 1\nb: 2\n"),
    Case("upstream added it", "a: 1\nc: 1\n", "c: 1\na: 1\n", "a: 1\nb: 2  # vendor: 2\nc: 1\n",
         "c: 1\na: 1\nb: 2  # vendor: 2\n"),
    Case("the person added it", "a: 1\n", "a: 1\nmirostat: 0  # mine\n", "a: 2\n", "a: 2\nmirostat: 0  # mine\n"),
    Case("both made the same change", "a: 1\nb: 1\n", "a: 2\nb: 1\n", "a: 2\nb: 2\n", "a: 2\nb: 2\n"),
    Case("both changed it", "a: 1\nb: 1\n", "a: 5  # mine\nb: 1\n", "a: 2\nb: 2\n", conflicts=("a",)),
    Case("the person removed what upstream changed", "a: 1\nb: 1\n", "b: 1\n", "a: 2\nb: 1\n", conflicts=("a",)),
    Case("upstream removed what the person changed", "a: 1\nb: 1\n", "a: 5\nb: 1\n", "b: 1\n", conflicts=("a",)),
    Case("both added it, each with another value", "a: 1\n", "a: 1\nb: 5\n", "a: 1\nb: 2\n", conflicts=("b",)),
    Case("zero, false, empty and null are values", "a: 1\nb: 1\nc: 1\nd: 1\ne: 1\n", "a: 0\nb: false\nc: ''\nd: null\ne: 1\n",
         "a: 1\nb: 1\nc: 1\nd: 1\ne: 2\n", "a: 0\nb: false\nc: ''\nd: null\ne: 2\n"),
    Case("keys of one map", "p:\n  a: 1\n  b: 1\n", "p: {a: 5, b: 1}\n", "p:\n  a: 1\n  b: 2\n  c: 3\n", "p: {a: 5, b: 2, c: 3}\n"),
    Case("a map that the person removed", "p:\n  a: 1\nb: 1\n", "b: 1\n", "p:\n  a: 1\n  c: 3\nb: 1\n", "b: 1\np:\n  c: 3\n"),
    Case("options by their keys", "options:\n- t:h  # proved: h\n- r:q\n", "options:\n- r:q  # mine\n- --x=1\n- t:h  # proved: h\n",
         "options:\n- t:x  # proved: x\n- n:1\n- r:q\n", "options:\n- r:q  # mine\n- --x=1\n- t:x  # proved: x\n- n:1\n"),
    Case("an option that both changed", "options:\n- t:h\n", "options:\n- 't:'\n", "options:\n- t:x\n", conflicts=("options.t",)),
    Case("the first option", "a: 1\n", "a: 1  # mine\n", "a: 1\noptions:\n- t:h  # proved: h\n",
         "a: 1  # mine\noptions:\n- t:h  # proved: h\n"),
    Case("the last option", "options:\n- t:h  # proved: h\na: 1\n", "options:\n- t:h  # proved: h\n# mine\na: 1\n", "a: 1\n",
         "# mine\na: 1\n"),
    Case("a repeated option", "options:\n- s:1\n- s:2\n- t:h\n", "options:\n- s:1\n- t:h\n- s:2\n", "options:\n- s:1\n- s:3\n- t:h\n",
         "options:\n- s:1\n- s:3\n- t:h\n"),
    Case("artifacts by their names", "artifacts:\n- name: model\n  source:\n    revision: a\n",
         "artifacts:\n- name: model\n  source:\n    revision: a\n    token_env: HF_TOKEN\n- name: own\n",
         "artifacts:\n- name: model\n  source:\n    revision: b\n",
         "artifacts:\n- name: model\n  source:\n    revision: b\n    token_env: HF_TOKEN\n- name: own\n"),
    Case("bookkeeping that the person removed",
         "a: 1\nartifacts:\n- name: model\n  revision: a\nimporter: {revision: a, engine: {name: x}}\n", "a: 1\nimporter: {revision: a}\n",
         "a: 2\nartifacts:\n- name: model\n  revision: b\nimporter: {revision: b, engine: {name: y}}\n", "a: 2\nimporter: {revision: b}\n"),
    Case("another list, whole", "s: [a, b]\n", "s: [a, b, c]\n", "s: [a, d]\n", conflicts=("s",)),
    Case("a list with changes of one side", "s:\n- a\n- b\nt: 1\n", "s:\n- a  # mine\n- b\nt: 5\n", "s:\n- a\n- c\nt: 1\n",
         "s:\n- a  # mine\n- c\nt: 5\n"),
    Case("the person's value is now also ours", "a: 1  # vendor: 1\n", "a: 2  # edited in this file; imported: 1\n",
         "a: 2  # vendor: 2\n", "a: 2  # vendor: 2\n"),
    Case("the head is ours", "# h\n# attention: x\na: 1\n", "# h\n# attention: x\na: 1\nb: 2\n", "# h\n# attention: y\na: 1\n",
         "# h\n# attention: y\na: 1\nb: 2\n"),
    Case("the person wrote into the head", "# h\n# attention: x\na: 1\n", "# h\n# mine\na: 1\nb: 2\n", "# h\na: 1\n",
         "# h\n# mine\na: 1\nb: 2\n"),
    Case("what follows from other values", "p: {t: 1}\nimporter:\n  client_sampling: {t: 1}\n",
         "p: {t: 5}\nimporter:\n  client_sampling: {t: 5}\n", "p: {t: 1}\nimporter:\n  client_sampling: {t: 2}\n",
         "p: {t: 5}\nimporter:\n  client_sampling: {t: 2}\n"),
]  # fmt: skip
