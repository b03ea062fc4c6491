"""Processes of the service that are killed at work: one point by day, every one at night."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from importer.engines.install import Installed
from tests.killer.kill import Killer, killing
from tests.killer.points import POINTS, Point
from tests.tiers import one_of_each

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.xdist_group("killed")]
BY_DAY = ("validation", "engine ready")  # imports of a worker that dies: test_jobs_workers


@pytest.fixture(scope="module")
def killer(tmp_path_factory: pytest.TempPathFactory, mlx_engine: Installed) -> Iterator[Killer]:
    del mlx_engine
    with killing(tmp_path_factory.mktemp("killed")) as one:
        yield one


@pytest.mark.parametrize(
    "point",
    one_of_each(sorted(POINTS, key=lambda p: (p.kind, p.at) != BY_DAY)),
    ids=lambda p: f"{p.kind}-{p.at}".replace(" ", "-"),
)
def test_a_job_goes_on_where_it_was_and_once(killer: Killer, point: Point) -> None:
    assert killer.at(point) == []


def test_every_boundary_of_every_step_has_a_point() -> None:
    assert len({(p.kind, p.at) for p in POINTS}) == len(POINTS)
    assert BY_DAY in {(p.kind, p.at) for p in POINTS}
