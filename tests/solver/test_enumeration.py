"""Layers of states: those of the naive game, and published counts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lab2048.solver.enumeration import Enumeration, Mover, afterstates
from lab2048.solver.problem import Problem
from lab2048.solver.threads import WorkerThreads
from tests import naive
from tests.solver.solving import canonical, needs_jit

FIRST_AGES_4X3 = [
    *(22, 72, 172, 366, 739, 1337, 2307, 3812, 6186, 9574, 14303, 20675, 29166, 39935, 53854),
    *(71393, 92834, 117907, 148006, 182813, 222789, 268627, 320435, 377078, 440276, 509787),
    *(585560, 668214, 759221, 855292, 957949, 1068940, 1186403, 1310041, 1440714, 1577558),
]
"""The published number of states of 4x3 with age 4, 6, 8, ..."""


# -- kernels -----------------------------------------------------------------------------------


# -- layers ------------------------------------------------------------------------------------


def test_the_naive_game_has_the_published_number_of_states():
    assert len(naive.game_graph(2, 2, Fraction(1, 10))) == 662


@pytest.mark.slow
@pytest.mark.parametrize("p4", [0.1, 0.0, 1.0])
def test_the_layers_are_those_of_the_naive_game(p4):
    graph = naive.game_graph(2, 2, Fraction(p4).limit_denominator(10))
    states = {canonical([list(row) for row in state]) for state in graph}
    afters = {canonical([list(row) for row in x]) for ms in graph.values() for _, x, _ in ms}
    with WorkerThreads(1) as workers:
        layers = list(Enumeration(Problem.of("2x2", p4=p4), workers))
    assert [layer.age for layer in layers] == list(range(4, 4 + 2 * len(layers), 2))
    found = np.concatenate([part for layer in layers for part in layer.states]).tolist()
    assert len(found) == len(set(found)) and set(found) == states
    found = np.concatenate([part for layer in layers for part in layer.afters]).tolist()
    assert len(found) == len(set(found)) and set(found) == afters


@needs_jit
@pytest.mark.slow
def test_the_first_ages_of_4x3():
    with WorkerThreads(2) as workers:
        layers = iter(Enumeration(Problem.of("4x3"), workers))
        found = [sum(map(len, next(layers).states)) for _ in FIRST_AGES_4X3]
    assert found == FIRST_AGES_4X3


@pytest.mark.slow
def test_afterstates_can_be_found_again_from_the_states():
    problem = Problem.of("2x2")
    with WorkerThreads(1) as workers:
        for layer in Enumeration(problem, workers):
            edges, _ = Mover(problem)(np.concatenate(layer.states))
            assert (afterstates(edges) == np.concatenate(layer.afters)).all()
