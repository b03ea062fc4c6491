"""Kill processes of the service and print what became: ``python -m tests.killer [--database URL]``.

First a process dies at each point, then at random moments of imports and validations. 1 where one is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.killer.kill import Kill, killing, moments
from tests.killer.points import POINTS, Kind

KINDS: tuple[Kind, ...] = ("import", "validation")


def main() -> int:
    """0 where each job went on where it was, once, and left nothing."""
    parser = argparse.ArgumentParser(prog="python -m tests.killer", description=__doc__)
    parser.add_argument("--random", type=int, default=50, metavar="N", help="kills at random moments")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", metavar="URL", help="postgresql://… in place of an SQLite file")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="importer-killer-") as folder,
        killing(Path(folder), options.database) as killer,
    ):
        kills = [_told(killer.at(point)) for point in POINTS]
        for kind in KINDS if options.random else ():
            found = moments(options.seed, options.random // len(KINDS), kind, killer.events(kind))
            kills.extend(_told(killer.sometime(one)) for one in found)
    says = {(p.kind, p.process, p.at): p.says for p in POINTS}
    sys.stdout.write(table(kills, says))
    return any(kill.wrong for kill in kills)


def _told(kill: Kill) -> Kill:
    sys.stderr.write(f"{json.dumps(asdict(kill))}\n")
    return kill


def table(kills: Sequence[Kill], says: dict[tuple[str, str, str], str]) -> str:
    """Markdown: a row for each point, one for all random moments of a kind and a process."""
    heads = ("job", "killed", "where", "kills", "as it should be", "begun anew", "processes gone", "goes on")
    rows = [heads, ("---",) * len(heads)]
    groups: dict[tuple[str, str, str], list[Kill]] = {}
    for kill in kills:
        said = says.get((kill.kind, kill.process, kill.at))
        where = "random moments" if said is None else f"{kill.at}: {said}"
        groups.setdefault((kill.kind, kill.process, where), []).append(kill)
    for key, found in groups.items():
        fine, anew = sum(not kill.wrong for kill in found), sum(kill.anew for kill in found)
        on = [kill.on for kill in found if kill.on is not None]
        rows.append(
            (*key, str(len(found)), str(fine), str(anew), f"{max(k.gone for k in found):.1f} s",
             f"{max(on):.1f} s" if on else "–")
        )  # fmt: skip
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
