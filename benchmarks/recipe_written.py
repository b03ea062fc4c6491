"""Whether every official deployment can be written: its command as settings, their document, its export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.recipe_compare import device_of
from benchmarks.recipe_documents import Command, Documents, Refused
from benchmarks.recipe_settings import IMPLIED, OURS, same, setting, settings, values_of
from gen_defaults.recipe_commands import Deployment

TEMPLATE = "chat-template"
# A stand-in for a template of vLLM's images: the option that names it is compared, not its text.
STAND_IN = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"


@dataclass(frozen=True, slots=True)
class Unwritten:
    """One flag or variable that does not come back: ``refused`` with a sentence, or ``lost``."""

    deployment: Deployment
    name: str
    value: Any
    outcome: str
    why: str


def unwritten(documents: Documents, deployment: Deployment) -> list[Unwritten]:
    """Return the flags and variables of a deployment that its document does not bring back."""
    values = values_of(deployment.flags)
    command = _command(documents, deployment, values, deployment.env)
    if isinstance(command, Command):
        return [*_lost(deployment, values, command)]
    return [*_each(documents, deployment, values, command)]


def _each(
    documents: Documents, deployment: Deployment, values: Mapping[str, Any], whole: Refused
) -> Iterator[Unwritten]:
    """Yield the flags and variables that are refused alone; all of them where none is."""
    alone = False
    for name, value in values.items():
        command = _command(documents, deployment, {name: value}, {})
        if isinstance(command, Refused):
            alone = True
            yield Unwritten(deployment, f"--{name}", value, "refused", command.message)
        elif lost := [*_lost(deployment, {name: value}, command, variables=False)]:
            alone = True
            yield from lost
    for name, text in deployment.env.items():
        command = _command(documents, deployment, {}, {name: text})
        if isinstance(command, Refused):
            alone = True
            yield Unwritten(deployment, name, text, "refused", command.message)
    if not alone:
        yield Unwritten(deployment, "all together", None, "refused", whole.message)


def _command(
    documents: Documents, deployment: Deployment, values: Mapping[str, Any], env: Mapping[str, str]
) -> Command | Refused:
    template = STAND_IN if TEMPLATE in values else None
    wanted = settings({k: v for k, v in values.items() if k != TEMPLATE}, env)
    device = device_of(deployment.profile, deployment.nodes)
    return documents.command(deployment.model, device, wanted, template)


def _lost(
    deployment: Deployment, values: Mapping[str, Any], command: Command, *, variables: bool = True
) -> Iterator[Unwritten]:
    """Yield the flags and variables that the exported command lacks, or has with another value."""
    for name, value in values.items():
        if name in OURS or (name in IMPLIED and "tool-call-parser" not in values) or name == TEMPLATE:
            if name == TEMPLATE and name not in command.flags:
                yield Unwritten(deployment, f"--{name}", value, "lost", "")
            continue
        back = command.flags.get(name)
        if isinstance(value, Mapping) and isinstance(back, Mapping):
            back = {
                key: back[key] for key in back if key in value
            }  # the document's own sampling stands beside
        if name not in command.flags and value is False and setting(name, value):
            back = False  # a flag that is off is written by its absence
        if not same(value, back):
            yield Unwritten(deployment, f"--{name}", value, "lost", f"written as {back!r}")
    for name, text in deployment.env.items() if variables else ():
        if name not in command.env or (command.env[name] != text and not text.startswith("$")):
            yield Unwritten(deployment, name, text, "lost", f"written as {command.env.get(name)!r}")
