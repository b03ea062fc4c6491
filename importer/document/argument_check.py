"""Arguments of an engine in a document: their names, types and choices, and those that no document sets."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from importer.document import engine_data
from importer.document.engine_arguments import Argument, ArgumentRegistry, Kind, load
from importer.hub.reference import is_directory
from importer.reasons import Fields, Reason, ReasonKind


def _own_place(fields: Fields) -> str:
    """The place of an argument with a key of its own; of the same name it is the key alone."""
    if fields["key"] == fields["place"]:
        return f"it is not set here; use {fields['key']} at the top level"
    return f"{fields['key']} is not set here; use {fields['place']}"


class Refusal(ReasonKind):
    """Why a document may not set an argument."""

    LAUNCHER = "{key} belongs to the command that starts the server, so no document sets it"
    OWN_PLACE = (_own_place,)
    SECRET = "{key} is a secret, so no document sets it"  # noqa: S105 - a sentence
    TRUSTED_CLIENTS = "{key} trusts what clients send, so no document sets it"


SECRETS = re.compile(r"(?:^|_)(?:api_key|hf_token|auth_token|password|passphrase|secret|credentials?)(?:_|$)")
DRAFTER = "speculative_config.model"  # a second repository, at a commit of its own
DIGITS = re.compile(r"[0-9]+")


def refusal(engine: str, name: str) -> Reason | None:
    """Return why no document sets the argument ``name`` of ``engine_args``; ``None`` where one may."""
    data = engine_data.load(engine)
    place = data.own_places.get(name)
    if name in data.added:
        return None
    if place is not None and name not in data.either:
        return Reason(Refusal.OWN_PLACE, key=name, place=place)
    if name in (every := engine_data.every()).launcher:
        return Reason(Refusal.LAUNCHER, key=name)
    if name in every.for_clients or name.startswith("trust_"):
        return Reason(Refusal.TRUSTED_CLIENTS, key=name)
    return Reason(Refusal.SECRET, key=name) if SECRETS.search(name.lower()) else None


KEY: Final = "engine_args"
LONGEST = 4000  # characters of a text
DEEPEST = 12
ANY_CASE = "any_case"  # beside choices of which the engine reads small and capital letters alike
FEW = 8  # choices that a sentence has room for
READABLE = re.compile(r"[0-9]+(?:\.[0-9]+)?[kKmMgGtT]?")  # vLLM reads 8K and 1.5M
HUB_ID = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")
WORDS = {
    "bool": "true or false", "int": "a whole number", "float": "a number", "str": "a text",
    "size": "a whole number", "any": "a number or a text", "null": "nothing",
}  # fmt: skip
COMPARED: Mapping[str, tuple[str, Callable[[float, float], bool]]] = {
    "ge": (">=", operator.ge), "gt": (">", operator.gt), "le": ("<=", operator.le), "lt": ("<", operator.lt),
}  # fmt: skip
SCHEMA_TYPES = {"bool": "boolean", "int": "integer", "size": "integer", "float": "number", "str": "string"}
Fault = tuple[tuple[str, ...], Reason]  # a path below ``engine_args``, and what is wrong there


def not_one_of(fields: Fields) -> str:
    """Return a {value} and the {known} ones, an empty text in quotes."""
    known = fields["known"]
    listed = [one if one != "" else "''" for one in ([known] if isinstance(known, str) else known)]
    return f"{fields['value']!r} is not one of {', '.join(map(str, listed))}"


class ArgumentReason(ReasonKind):
    """What is wrong with an argument of an engine."""

    UNKNOWN = "{of} has no argument of this name{near:?}"
    RENAMED = "{of} has no argument of this name; it is {name} now"
    REMOVED = "{of} has no argument of this name any more; leave it out"
    WRONG_TYPE = "{value!r} is not {kind}"
    NOT_ONE_OF = (not_one_of,)
    NOT_ONE_OF_MANY = "{value!r} is none of its {count} values, such as {near}"
    OUT_OF_RANGE = "{value!r} is not {limit}"
    UNPRINTABLE = "it holds characters that cannot be seen, or too many"
    LIKE_A_FLAG = "{value!r} is empty or begins like a flag"
    UNPINNED_MODEL = "{model} is a second repository: name its commit under revision, 40 hexadecimal digits"


def arguments_of(engine: str, version: str | None = None) -> Mapping[str, Argument]:
    """Return the arguments of a version by name, and those of the launcher beside it; no refused ones."""
    registry = load(engine, version)
    if registry is None:
        return {}
    named = {**registry.arguments, **engine_data.load(engine).added}
    return {n: a for n, a in named.items() if refusal(engine, n) is None}


def known(engine: str, version: str | None, name: str) -> Argument | None:
    """Return the argument with a name or an alias."""
    registry = load(engine, version)
    added = engine_data.load(engine).added.get(name)
    return added or (None if registry is None else registry.get(name))


def faults(engine: str, version: str | None, values: Mapping[str, object]) -> Iterator[Fault]:
    """Yield what is wrong with ``engine_args``; nothing for an engine without known arguments."""
    registry = load(engine, version)
    if registry is None:
        return
    for name, value in values.items():
        argument = known(engine, version, str(name))
        if argument is None:
            yield (str(name),), unknown(registry, str(name))
        elif reason := refusal(engine, argument.name):
            yield (str(name),), reason
        elif value is not None:
            yield from _Check(registry, argument.name).all(argument, value)


def of_value(engine: str, version: str | None, name: str, value: Any) -> Iterator[Fault]:
    """Yield what is wrong with a value of the document's own key, which the engine has as an argument."""
    registry = load(engine, version)
    argument = None if registry is None else registry.get(name)
    if registry is not None and argument is not None and value is not None:
        yield from _Check(registry, argument.name).all(argument, value)


def kind_name(kind: Kind) -> str:
    """Return the type in the words of JSON Schema, for lists of keys."""
    if isinstance(kind, str):
        return SCHEMA_TYPES.get(kind, "any")
    if "one_of" in kind:
        return " ".join(map(str, kind["one_of"]))
    if "any_of" in kind:
        return " or ".join(dict.fromkeys(kind_name(one) for one in kind["any_of"] if one != "code"))
    return "array" if "list" in kind else "object"


def unknown(registry: ArgumentRegistry, name: str) -> Reason:
    """Return the reason for a name that the version lacks, with near ones."""
    plain = name.replace("-", "_").lower()
    of, present = (
        f"{registry.engine} {registry.version}",
        engine_data.load(registry.engine).renamed.get(plain),
    )
    if present is not None:
        kind = ArgumentReason.RENAMED if present else ArgumentReason.REMOVED
        return Reason(kind, of=of, **({"name": f"engine_args.{present}"} if present else {}))
    names = arguments_of(registry.engine, registry.version)
    return Reason(ArgumentReason.UNKNOWN, of=of, near=near(plain, names))


def near(name: str, names: Iterable[str]) -> list[str]:
    """Return at most three similar names, the nearest first."""
    return get_close_matches(name, [*dict.fromkeys(names)], 3)


def _is_further(kind: Kind, value: Any) -> bool:
    """Return whether a name may be one that an open list lacks: another version of one, or unlike all."""
    kinds = kind["any_of"] if isinstance(kind, Mapping) and "any_of" in kind else [kind]
    names = [str(n) for k in kinds if isinstance(k, Mapping) for n in k.get("one_of", ())]
    alike = near(str(value), names)
    return not alike or any(DIGITS.sub("", str(value)) == DIGITS.sub("", name) for name in alike)


class _Check:
    """The check of one argument's value."""

    def __init__(self, registry: ArgumentRegistry, name: str) -> None:
        self._registry, self._name = registry, name

    def all(self, argument: Argument, value: Any) -> Iterator[Fault]:
        path = (self._name,)
        value = [value] if argument.many and not isinstance(value, list) else value  # as behind a flag
        found = [*self._of(argument.kind, path, value), *_range(argument, path, value)]
        yield from found
        if not found:
            yield from self._as_word(argument, path, value)

    def _as_word(self, argument: Argument, path: tuple[str, ...], value: Any) -> Iterator[Fault]:
        """Yield a word that a parser of a command line takes for a flag."""
        if value == [] and (argument.many or argument.repeats):
            yield path, Reason(ArgumentReason.LIKE_A_FLAG, value="[]")
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and (one.startswith("-") or not one):
                yield path, Reason(ArgumentReason.LIKE_A_FLAG, value=one)
            if isinstance(one, float) and one < 0 and (argument.many or not isinstance(value, list)):
                yield path, Reason(ArgumentReason.OUT_OF_RANGE, value=one, limit=">= 0")

    def _of(self, kind: Kind, path: tuple[str, ...], value: Any) -> Iterator[Fault]:
        name, data = ".".join(path), engine_data.load(self._registry.engine)
        kind = {"one_of": data.choices[name]} if name in data.choices else kind
        kind = "str" if name in data.open and _is_further(kind, value) else kind
        if len(path) > DEEPEST:
            yield path, Reason(ArgumentReason.WRONG_TYPE, value="…", kind="less deep")
        elif isinstance(kind, str):
            yield from self._simple(kind, path, value)
        elif "one_of" in kind:
            if not chosen(kind, value):
                yield path, _not_one_of(value, kind["one_of"])
        elif "any_of" in kind:
            yield from self._any_of(kind["any_of"], path, value)
        elif "list" in kind:
            if not isinstance(value, list):
                yield path, _wrong(value, "a list")
            else:
                for one in value:
                    yield from self._of(kind["list"], path, one)
        elif "map" in kind:
            yield from self._map(kind["map"], path, value)
        else:
            yield from self._config(kind["config"], path, value)

    def _any_of(self, kinds: list[Kind], path: tuple[str, ...], value: Any) -> Iterator[Fault]:
        """Yield the faults of the nearest alternative; a list of choices closes those with free texts."""
        chosen = [k for k in kinds if isinstance(k, Mapping) and "one_of" in k]
        if chosen:
            merged = {
                "one_of": [one for k in chosen for one in k["one_of"]],
                ANY_CASE: any(map(_any_case, chosen)),
            }
            kinds = [merged, *(k for k in kinds if k not in chosen and k not in ("str", "any", "code"))]
        kinds = [k for k in kinds if k != "code"]
        attempts = [[*self._of(kind, path, value)] for kind in kinds]
        yield from min(attempts, key=lambda found: (bool(found), _type_wrong(found)), default=[])

    def _simple(self, kind: str, path: tuple[str, ...], value: Any) -> Iterator[Fault]:
        if kind == "any" and len(path) > 1:
            yield from self._free(path, value)
            return
        if not _is(kind, value):
            yield path, _wrong(value, WORDS.get(kind, kind))
        elif isinstance(value, str):
            yield from self._text(path, value)

    def _text(self, path: tuple[str, ...], value: str) -> Iterator[Fault]:
        inside = "\n\t" if len(path) > 1 else ""  # a word of its own holds no line ends
        if len(value) > LONGEST or not all(c.isprintable() or c in inside for c in value):
            yield path, Reason(ArgumentReason.UNPRINTABLE)

    def _free(self, path: tuple[str, ...], value: Any) -> Iterator[Fault]:
        """Yield the faults of a value without a known type."""
        if isinstance(value, Mapping):
            yield from self._map("any", path, value)
        elif isinstance(value, list):
            for one in value:
                yield from self._free(path, one) if len(path) < DEEPEST else ()
        elif isinstance(value, str):
            yield from self._text(path, value)
        elif value is not None and not isinstance(value, bool | int | float):
            yield path, _wrong(value, "a value of JSON")
        elif isinstance(value, float) and not math.isfinite(value):
            yield path, _wrong(value, "a number")

    def _map(self, inner: Kind, path: tuple[str, ...], value: Any) -> Iterator[Fault]:
        if not isinstance(value, Mapping):
            yield path, _wrong(value, "a map")
            return
        for key, one in value.items():
            place = (*path, str(key))
            if not isinstance(key, str) or not key.isprintable():
                yield place, Reason(ArgumentReason.UNPRINTABLE)
            elif one is not None:
                yield from self._of(inner, place, one)

    def _config(self, name: str, path: tuple[str, ...], value: Any) -> Iterator[Fault]:
        if not isinstance(value, Mapping):
            yield path, _wrong(value, "a map")
            return
        fields = self._registry.configs[name]
        for key, one in value.items():
            place, argument = (*path, str(key)), fields.get(str(key))
            if argument is None:
                of = f"{self._registry.engine}'s {'.'.join(path)}"
                yield place, Reason(ArgumentReason.UNKNOWN, of=of, near=near(str(key), fields))
            elif one is not None:
                yield from self._of(argument.kind, place, one)
                yield from _range(argument, place, one)
        if f"{'.'.join(path)}.model" == DRAFTER and value.get("model") is not None:
            yield from _drafter(path, value)


def _drafter(path: tuple[str, ...], value: Mapping[str, object]) -> Iterator[Fault]:
    """Yield a second repository without a commit; ``ngram`` is a method in the place of a model."""
    model, revision = str(value["model"]), value.get("revision")
    if is_directory(model) or not (HUB_ID.fullmatch(model) and COMMIT.fullmatch(str(revision))):
        yield (*path, "model"), Reason(ArgumentReason.UNPINNED_MODEL, model=model)


def _any_case(kind: Mapping[str, Any]) -> bool:
    return kind.get(ANY_CASE) is True


def chosen(kind: Mapping[str, Any], value: Any) -> bool:
    """Return whether a value is one of the choices, with its type."""
    if _any_case(kind) and isinstance(value, str):
        return value.casefold() in {one.casefold() for one in kind["one_of"] if isinstance(one, str)}
    return any(type(value) is type(one) and value == one for one in kind["one_of"])


def _is(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "bool"
    if kind == "int":
        return isinstance(value, int)
    if kind == "size":
        return isinstance(value, int) or (isinstance(value, str) and bool(READABLE.fullmatch(value)))
    if kind == "float":
        return isinstance(value, int | float) and math.isfinite(value)
    if kind == "str":
        return isinstance(value, str)
    return kind == "any" and (
        isinstance(value, str) or (isinstance(value, int | float) and math.isfinite(value))
    )


def _range(argument: Argument, path: tuple[str, ...], value: Any) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    for key, limit in argument.limits.items():
        sign, holds = COMPARED[key]
        if not holds(value, limit):
            yield path, Reason(ArgumentReason.OUT_OF_RANGE, value=value, limit=f"{sign} {limit:g}")


def _wrong(value: Any, kind: str) -> Reason:
    return Reason(ArgumentReason.WRONG_TYPE, value=_shown(value), kind=kind)


def _type_wrong(found: list[Fault]) -> bool:
    return any(reason.kind is ArgumentReason.WRONG_TYPE and len(path) == 1 for path, reason in found)


def _not_one_of(value: Any, known: list[Any]) -> Reason:
    """Return the reason with all choices, or of many the near ones."""
    if len(known) <= FEW:
        return Reason(ArgumentReason.NOT_ONE_OF, value=_shown(value), known=known)
    names = {str(one).casefold(): str(one) for one in known}
    found = get_close_matches(str(value)[:99].casefold(), names, FEW, 0.5)
    near = [names[one] for one in found or [*names][:FEW]]
    return Reason(ArgumentReason.NOT_ONE_OF_MANY, value=_shown(value), count=len(known), near=near)


def _shown(value: Any) -> Any:
    text = repr(value)
    return value if len(text) < 80 else f"{text[:60]}…"
