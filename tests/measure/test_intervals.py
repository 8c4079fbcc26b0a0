"""Intervals, against `scipy.stats` and against what they must cover."""

import numpy as np
import pytest
from scipy import stats

from lab2048.measure.intervals import (
    clustered_interval,
    mean_interval,
    share_interval,
    student_half_width,
)


def test_the_bootstrap_is_normal_for_many_values():
    assert mean_interval([5.0]) is None
    data = np.random.default_rng(1).normal(10, 2, 400)
    half = 1.96 * 2 / 400**0.5
    assert mean_interval(data) == pytest.approx([data.mean() - half, data.mean() + half], abs=0.03)


@pytest.mark.parametrize("n", [2, 3, 5, 21, 22, 100, 1000])
def test_means_of_a_few_values_have_the_intervals_of_student(n):
    data = np.random.default_rng(n).normal(3, 5, n)
    low, high = stats.t.interval(0.95, n - 1, data.mean(), stats.sem(data))
    assert student_half_width(data) == pytest.approx((high - low) / 2, rel=1e-12)


def test_one_value_has_no_interval():
    assert np.isnan(student_half_width([1.0]))


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (10, 10), (5, 20), (1, 1), (9, 1000)])
def test_shares_have_the_intervals_of_wilson(successes, trials):
    ends = stats.binomtest(successes, trials).proportion_ci(0.95, "wilson")
    assert share_interval(successes, trials) == pytest.approx([ends.low, ends.high], abs=1e-15)


def test_moves_of_the_same_game_count_as_one():
    right = np.random.default_rng(3).random(400) < 0.3
    share = right.mean()
    half = stats.norm.ppf(0.975) * (share * (1 - share) / 399) ** 0.5
    alone = clustered_interval(np.arange(400), right)
    assert alone == pytest.approx([share - half, share + half], rel=1e-12)
    many = clustered_interval(np.repeat(np.arange(400), 25), np.repeat(right, 25))
    assert many == pytest.approx(alone, rel=1e-12)
    assert clustered_interval(np.arange(10), np.ones(10, bool)) == share_interval(10, 10)
    assert clustered_interval(np.zeros(10, int), right[:10]) is None
