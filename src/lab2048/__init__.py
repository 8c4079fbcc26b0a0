"""lab2048: a laboratory for the game 2048.

The names below are the public API. They are found when they are first used, so that importing
the package loads no kernel and no large library.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lab2048.bench.benchmark import benchmark as benchmark
    from lab2048.cluster.connection import ClusterNodes as ClusterNodes
    from lab2048.cluster.connection import Connection as Connection
    from lab2048.cluster.connection import check_cluster as check_cluster
    from lab2048.cluster.connection import connect as connect
    from lab2048.cluster.workers import ClusterError as ClusterError
    from lab2048.data.files import Written as Written
    from lab2048.data.files import check_moves as check_moves
    from lab2048.data.files import save_labels as save_labels
    from lab2048.data.files import save_moves as save_moves
    from lab2048.data.files import save_perfect_labels as save_perfect_labels
    from lab2048.engine.packed import rank_at as rank_at
    from lab2048.engine.random_games import RandomGames as RandomGames
    from lab2048.engine.random_games import random_games as random_games
    from lab2048.game import Board as Board
    from lab2048.game import Canonical as Canonical
    from lab2048.game import Direction as Direction
    from lab2048.game import Game as Game
    from lab2048.game import Move as Move
    from lab2048.game import Rules as Rules
    from lab2048.game import Spawn as Spawn
    from lab2048.game import direction_from_image as direction_from_image
    from lab2048.game import direction_on_image as direction_on_image
    from lab2048.game.record import Record as Record
    from lab2048.game.record import read_records as read_records
    from lab2048.game.record import write_records as write_records
    from lab2048.learn import train as train
    from lab2048.learn.learner import Learner as Learner
    from lab2048.learn.registry import register_learner as register_learner
    from lab2048.learn.result import TrainedRun as TrainedRun
    from lab2048.learn.result import TrainedRuns as TrainedRuns
    from lab2048.learn.settings import LearnerSettings as LearnerSettings
    from lab2048.learn.settings import setting as setting
    from lab2048.learn.trained_networks import list_networks as list_networks
    from lab2048.learn.trained_networks import pack_network as pack_network
    from lab2048.measure.arena import Match as Match
    from lab2048.measure.arena import play_match as play_match
    from lab2048.measure.evaluation import Difference as Difference
    from lab2048.measure.evaluation import Evaluation as Evaluation
    from lab2048.measure.evaluation import PlayerResult as PlayerResult
    from lab2048.measure.evaluation import compare as compare
    from lab2048.measure.evaluation import evaluate as evaluate
    from lab2048.measure.positions import Probed as Probed
    from lab2048.measure.positions import probe as probe
    from lab2048.measure.replay import Replayed as Replayed
    from lab2048.measure.replay import replay as replay
    from lab2048.measure.review import Review as Review
    from lab2048.measure.review import review as review
    from lab2048.players.heuristics import register_heuristic as register_heuristic
    from lab2048.players.player import Player as Player
    from lab2048.players.player import PlayerError as PlayerError
    from lab2048.players.player import option as option
    from lab2048.players.registry import list_players as list_players
    from lab2048.players.registry import player as player
    from lab2048.players.registry import register_player as register_player
    from lab2048.players.ties import legal_moves as legal_moves
    from lab2048.report.tour import Tour as Tour
    from lab2048.report.tour import tour as tour
    from lab2048.report.writing import write_plots as write_plots
    from lab2048.report.writing import write_report as write_report
    from lab2048.report.writing import write_tree as write_tree
    from lab2048.solver.estimate import ClusterEstimate as ClusterEstimate
    from lab2048.solver.estimate import Estimate as Estimate
    from lab2048.solver.estimate import estimate as estimate
    from lab2048.solver.exact_value import ExactValue as ExactValue
    from lab2048.solver.exact_value import exact_value as exact_value
    from lab2048.solver.job import make_table as make_table
    from lab2048.solver.objective import Objective as Objective
    from lab2048.solver.objective import register_objective as register_objective
    from lab2048.solver.problem import Problem as Problem
    from lab2048.solver.survey import Survey as Survey
    from lab2048.solver.survey import survey as survey
    from lab2048.solver.survey_by_p4 import SurveyByP4 as SurveyByP4
    from lab2048.solver.survey_by_p4 import survey_by_p4 as survey_by_p4
    from lab2048.solver.table import NotInTableError as NotInTableError
    from lab2048.solver.table import Table as Table
    from lab2048.solver.table_files import TableError as TableError
    from lab2048.solver.tables import list_tables as list_tables
    from lab2048.solver.tables import open_table as open_table
    from lab2048.solver.tables import remove_table as remove_table
    from lab2048.solver.tables import solve as solve
    from lab2048.solver.verify import verify as verify
    from lab2048.studio.server import serve as serve

__version__ = "0.1.0"

_HOMES = {
    "lab2048.game": [
        "Board",
        "Canonical",
        "Direction",
        "Game",
        "Move",
        "Rules",
        "Spawn",
        "direction_from_image",
        "direction_on_image",
    ],
    "lab2048.game.record": [
        "Record",
        "read_records",
        "write_records",
    ],
    "lab2048.engine.packed": ["rank_at"],
    "lab2048.engine.random_games": [
        "RandomGames",
        "random_games",
    ],
    "lab2048.players.heuristics": [
        "register_heuristic",
    ],
    "lab2048.players.player": [
        "Player",
        "PlayerError",
        "option",
    ],
    "lab2048.players.registry": [
        "list_players",
        "player",
        "register_player",
    ],
    "lab2048.players.ties": [
        "legal_moves",
    ],
    "lab2048.solver.objective": [
        "Objective",
        "register_objective",
    ],
    "lab2048.solver.problem": [
        "Problem",
    ],
    "lab2048.solver.table": [
        "NotInTableError",
        "Table",
    ],
    "lab2048.solver.table_files": [
        "TableError",
    ],
    "lab2048.solver.tables": [
        "list_tables",
        "open_table",
        "remove_table",
        "solve",
    ],
    "lab2048.solver.job": [
        "make_table",
    ],
    "lab2048.solver.estimate": [
        "ClusterEstimate",
        "Estimate",
        "estimate",
    ],
    "lab2048.solver.verify": [
        "verify",
    ],
    "lab2048.solver.exact_value": [
        "ExactValue",
        "exact_value",
    ],
    "lab2048.solver.survey": [
        "Survey",
        "survey",
    ],
    "lab2048.solver.survey_by_p4": [
        "SurveyByP4",
        "survey_by_p4",
    ],
    "lab2048.measure.arena": [
        "Match",
        "play_match",
    ],
    "lab2048.measure.evaluation": [
        "Difference",
        "Evaluation",
        "PlayerResult",
        "compare",
        "evaluate",
    ],
    "lab2048.measure.positions": [
        "Probed",
        "probe",
    ],
    "lab2048.measure.replay": [
        "Replayed",
        "replay",
    ],
    "lab2048.measure.review": [
        "Review",
        "review",
    ],
    "lab2048.data.files": [
        "Written",
        "check_moves",
        "save_labels",
        "save_moves",
        "save_perfect_labels",
    ],
    "lab2048.learn": [
        "train",
    ],
    "lab2048.learn.result": [
        "TrainedRun",
        "TrainedRuns",
    ],
    "lab2048.learn.trained_networks": [
        "list_networks",
        "pack_network",
    ],
    "lab2048.learn.registry": [
        "register_learner",
    ],
    "lab2048.learn.learner": [
        "Learner",
    ],
    "lab2048.learn.settings": [
        "LearnerSettings",
        "setting",
    ],
    "lab2048.report.writing": [
        "write_plots",
        "write_report",
        "write_tree",
    ],
    "lab2048.report.tour": [
        "Tour",
        "tour",
    ],
    "lab2048.cluster.workers": [
        "ClusterError",
    ],
    "lab2048.cluster.connection": [
        "ClusterNodes",
        "Connection",
        "check_cluster",
        "connect",
    ],
    "lab2048.studio.server": [
        "serve",
    ],
    "lab2048.bench.benchmark": [
        "benchmark",
    ],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lab2048' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if "gymnasium" in sys.modules:
    from lab2048.gym.registration import register_envs

    register_envs()
