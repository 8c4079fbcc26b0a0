"""Fixtures for tests and for the examples in docstrings. (Those in tests/ do not reach src/.)"""

from __future__ import annotations

import pytest
from _pytest.doctest import DoctestItem


def pytest_collection_modifyitems(items):
    for item in items:
        # these solve, play and train, so they compile many kernels
        heavy = {"solver", "measure", "data", "learn", "report"} & {*item.path.parts}
        if isinstance(item, DoctestItem) and (heavy or item.name == "README.md"):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def doctest_home(tmp_path_factory):
    """A data folder for all examples in docstrings, so that they do not write to the user's."""
    from lab2048.engine.jit import cache_folder

    folder = tmp_path_factory.mktemp("doctests")
    (folder / "kernels").symlink_to(cache_folder().parent)
    return folder


@pytest.fixture(autouse=True)
def _examples_leave_nothing(request, monkeypatch):
    """Give examples a data folder of their own, and undo what they register."""
    if isinstance(request.node, DoctestItem):
        monkeypatch.setenv("LAB2048_HOME", str(request.getfixturevalue("doctest_home")))
        request.getfixturevalue("forgetting")


@pytest.fixture
def forgetting():
    """Undo all registrations made during a test."""
    from lab2048.learn import registry as learners
    from lab2048.players import heuristics
    from lab2048.players import registry as players
    from lab2048.solver import objective

    known = [players._registered, players.PLAYERS, heuristics.HEURISTICS]
    known += [objective._objectives, learners._learners]
    before = [dict(each) for each in known]
    yield
    for each, old in zip(known, before, strict=True):
        each.clear()
        each.update(old)
