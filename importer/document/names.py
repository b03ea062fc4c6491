"""A document's name: from the repository, safe as a file name, unique in its folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from importer.errors import Setting, UsageError
from importer.reasons import Reason

ALLOWED = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")
RESERVED = ("index",)  # a gallery's list lies beside its entries
LONGEST = 120  # characters, so that a number fits behind


class NameReason(StrEnum):
    """Why a name is not one of a document."""

    CHARACTERS = "characters"
    RESERVED = "reserved"


def slug(text: str) -> str:
    """Lower case, only letters, digits, dots and hyphens: ``Qwen3-8B`` to ``qwen3-8b``."""
    found = re.sub(r"[^a-z0-9.-]+", "-", text.lower()).strip("-.")
    return re.sub(r"-{2,}", "-", found)[:96].rstrip("-.") or "model"


def check(name: str) -> str:
    """A name the user chose; raises UsageError where it is not safe as a file name."""
    if not ALLOWED.fullmatch(name) or len(name) > 128 or ".." in name:
        raise _refused(name, NameReason.CHARACTERS)
    if name in RESERVED:
        raise _refused(name, NameReason.RESERVED)
    return name


def _refused(name: str, reason: NameReason) -> UsageError:
    return UsageError("bad-value", setting=Setting.NAME, value=name, problem=Reason(reason, name=name))


def choose(model_id: str | None, folder_name: str, taken_by_other: Callable[[str], bool]) -> str:
    """The repository's name, with its owner in front where another repository has taken it."""
    owner, _, name = (model_id or folder_name).rpartition("/")
    short = slug(name)
    if not (short in RESERVED or taken_by_other(short)):
        return short
    long = f"{slug(owner)}--{short}"[:LONGEST].rstrip("-.") if owner else short
    if not (long in RESERVED or taken_by_other(long)):
        return long
    number = 2
    while taken_by_other(f"{long}-{number}"):
        number += 1
    return f"{long}-{number}"
