"""2048 for Gymnasium: one board, or a vector of thousands that a single kernel call steps.

    observation   Box(0, 17, (rows, cols), uint8): the rank of each cell, 0 where it is empty
    action        Discrete(4): 0 up, 1 right, 2 down, 3 left
    reward        the merged tiles of the move
    terminated    no move is legal
    truncated     the last `max_illegal` moves were illegal (100 by default; None: never truncated)
    info          "action_mask": int8, 1 for each legal move
                  "illegal": whether the last move was illegal and so changed nothing
                  "score": the sum of the rewards of this game
                  "max_tile": the largest tile on the board

`action_masks()` returns the mask as bools, as MaskablePPO of sb3-contrib expects it.

`gymnasium.make("lab2048.env:lab2048/Game-v0")` needs no import; after `import lab2048.env`, the
name `lab2048/Game-v0` is enough.

After `reset(seed=s)` the games are numbers 0, 1, 2, ... of seed s, as `lab2048.game.Game` plays
them; board j of a vector environment plays those of seed s + j.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab2048.engine.arrays import Bytes, Counts, Flags, Floats, Masks
from lab2048.game import P4, Board, Direction, Game, Rules, randomness, spawned
from lab2048.game.notation import MAX_RANK, short, whole
from lab2048.game.spawns import four_threshold
from lab2048.gym.picture import picture
from lab2048.gym.registration import register_envs

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise ImportError("this needs Gymnasium: pip install 'gymnasium>=1.1'") from error

register_envs()


MAX_ILLEGAL = 100
"""Illegal moves in a row that truncate an episode. With one legal move, that many random moves are
all illegal with probability 3e-13."""

_METADATA: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}


def _spaces(rules: Rules) -> tuple[Any, Any]:  # their type parameters fit no array type
    """The spaces of one board's observations and actions."""
    shape = (rules.rows, rules.cols)
    return gymnasium.spaces.Box(0, MAX_RANK, shape, np.uint8), gymnasium.spaces.Discrete(4)


def _check_render_mode(mode: str | None) -> str | None:
    """The mode, or a `ValueError`."""
    if mode is not None and mode not in _METADATA["render_modes"]:
        raise ValueError(f"render_mode is 'ansi', 'rgb_array' or None, not {mode!r}")
    return mode


def _check_max_illegal(number: int | None) -> int | None:
    """The number of illegal moves in a row that truncates an episode, or a `ValueError`."""
    found = None if number is None else whole(number) or 0
    if found is not None and found < 1:
        raise ValueError(f"max_illegal is a whole number from 1 on, or None, not {short(number)}")
    return found


def _action_mask(board: Board) -> Masks:
    """The legal moves as four 0s and 1s, as `engine.batch.observe` writes them."""
    legal = board.legal_moves
    return np.array([direction in legal for direction in Direction], np.int8)


class GameEnv(gymnasium.Env[Bytes, np.int64]):
    """One game of 2048; `gymnasium.make("lab2048/Game-v0", rows=4, cols=4)`."""

    metadata: dict[str, Any] = _METADATA

    def __init__(
        self,
        rows: int = 4,
        cols: int = 4,
        p4: float = P4,
        render_mode: str | None = None,
        max_illegal: int | None = MAX_ILLEGAL,
    ) -> None:
        self.rules = Rules(rows, cols, p4)
        self.max_illegal = _check_max_illegal(max_illegal)
        self._illegal = 0
        self.observation_space, self.action_space = _spaces(self.rules)
        self.render_mode = _check_render_mode(render_mode)
        self.game: Game | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Bytes, dict[str, Any]]:
        """Start the first game of a seed or, without a seed, the next game.

        `options={"start": board}` starts it from that board, in any form `Rules.position` accepts.
        """
        super().reset(seed=seed)
        given = (options or {}).get("start")
        start = None if given is None else self.rules.position(given)
        if seed is None and self.game is not None:
            index = self.game.index + 1
            self.game = Game(self.rules, self.game.seed, index=index, start=start)
        else:
            drawn = int(self.np_random.integers(2**32)) if seed is None else seed
            self.game = Game(self.rules, drawn, start=start)
        self._illegal = 0
        return self._observation(self.game), self._info(self.game, illegal=False)

    def step(self, action: np.int64 | int) -> tuple[Bytes, float, bool, bool, dict[str, Any]]:
        """Make a move; an illegal one changes nothing and spawns nothing."""
        if self.game is None:
            raise RuntimeError("call reset() before step()")
        move = self.game.board.move(action)
        if move.legal:
            self.game.play(action)
        self._illegal = 0 if move.legal else self._illegal + 1
        info = self._info(self.game, illegal=not move.legal)
        over = not info["action_mask"].any()
        stuck = not over and self.max_illegal is not None and self._illegal >= self.max_illegal
        return self._observation(self.game), float(move.reward), over, stuck, info

    def action_masks(self) -> Flags:
        """Which moves are legal now, as MaskablePPO expects it."""
        if self.game is None:
            raise RuntimeError("call reset() before action_masks()")
        return _action_mask(self.game.board).astype(np.bool_)

    def render(self) -> str | Bytes | None:
        """The board as text (`ansi`) or as a picture (`rgb_array`)."""
        if self.game is None or self.render_mode is None:
            return None
        if self.render_mode == "rgb_array":
            return picture(self.game.board)
        return f"{self.game.board.grid()}\nscore {self.game.score}\n"

    def _observation(self, game: Game) -> Bytes:
        """The ranks of the game's board."""
        shape = (self.rules.rows, self.rules.cols)
        return np.array(game.board.ranks, np.uint8).reshape(shape)

    def _info(self, game: Game, *, illegal: bool) -> dict[str, Any]:
        """The legal moves, whether the last move was illegal, the score and the largest tile."""
        return {
            "action_mask": _action_mask(game.board),
            "illegal": illegal,
            "score": game.score,
            "max_tile": game.board.max_tile,
        }


class GameVectorEnv(VectorEnv[Bytes, Counts, NDArray[Any]]):
    """Many games of 2048 in one kernel call; `gymnasium.make_vec("lab2048/Game-v0", 4096)`.

    A board whose game has ended starts the next one in the following step
    (`AutoresetMode.NEXT_STEP`, whatever the action, with reward 0) or, by option, in the same step
    (`SAME_STEP`, with the last observation in `info["final_obs"]`).
    """

    metadata: dict[str, Any] = _METADATA | {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        rows: int = 4,
        cols: int = 4,
        p4: float = P4,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_illegal: int | None = MAX_ILLEGAL,
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs is at least 1, not {num_envs}")
        modes = {m.value: m for m in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)}
        mode = autoreset_mode if isinstance(autoreset_mode, str) else autoreset_mode.value
        if mode not in modes:
            raise ValueError(f"autoreset_mode is 'NextStep' or 'SameStep', not {mode!r}")
        self.rules = Rules(rows, cols, p4)
        self.num_envs = num_envs
        self.render_mode = _check_render_mode(render_mode)
        self.metadata = {**self.metadata, "autoreset_mode": modes[mode]}
        self._same_step = modes[mode] is AutoresetMode.SAME_STEP
        self.single_observation_space, self.single_action_space = _spaces(self.rules)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._threshold = four_threshold(self.rules.p4)
        self._four = np.array(self._threshold, np.uint64)
        # boards, words, legal moves; a board with a tile above 32768 is in `_wide` instead
        self._state = np.zeros((3, num_envs), np.uint64)
        self._wide: dict[int, Board] = {}
        self._seeds = np.zeros(num_envs, np.uint64)
        self._games = np.zeros(num_envs, np.uint64)
        self._over = np.zeros(num_envs, np.bool_)
        self._tally = np.zeros((2, num_envs), np.int64)  # scores, and illegal moves in a row
        self.max_illegal = _check_max_illegal(max_illegal)
        self._seeded = False

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Bytes, dict[str, Any]]:
        """Start a game on every board: the first of its seed or, without a seed, the next."""
        if options:
            raise ValueError(f"the vector environment has no options, but got {list(options)}")
        seeds = self._lane_seeds(seed)
        for j, given in enumerate(seeds):
            if given is None:
                self._games[j] += np.uint64(1)
            else:
                self._seeds[j], self._games[j] = given, 0
        self._seeded = True
        self._restart(np.ones(self.num_envs, np.bool_))
        self._over[:] = False
        return self._observe(np.zeros(self.num_envs, np.bool_))

    def step(self, actions: Counts) -> tuple[Bytes, Floats, Flags, Flags, dict[str, Any]]:
        """Make a move on every board."""
        from lab2048.engine.batch import step_kernel, tally
        from lab2048.engine.slides import table

        if not self._seeded:
            raise RuntimeError("call reset() before step()")
        given = np.asarray(actions)
        fits = given.shape == (self.num_envs,) and given.dtype.kind in "iu"
        if not fits or given.min() < 0 or given.max() > 3:
            raise ValueError(f"actions are {self.num_envs} whole numbers from 0 to 3")
        moves = np.ascontiguousarray(given, np.int64)
        rewards = np.empty(self.num_envs, np.int64)
        rows, cols = self.rules.rows, self.rules.cols
        tables = table(cols), table(rows)
        step_kernel(rows, cols)(self._state, moves, self._four, *tables, rewards)
        self._move_wide(moves, rewards)
        gained, illegal = np.empty(self.num_envs), np.empty(self.num_envs, np.bool_)
        tally(rewards, self._tally, gained, illegal)
        if not self._same_step and self._over.any():
            self._begin_next(self._over)
            illegal &= ~self._over
            gained[self._over] = 0  # a truncated game has made one more move
        ranks, info = self._observe(illegal)
        ended, truncated = self._ended(), self._truncated()
        truncated &= ~ended
        self._over = over = ended | truncated
        if self._same_step and over.any():
            last = ranks, info
            self._begin_next(over)
            ranks, info = self._observe(illegal & ~over)
            info |= _finals(*last, over)
        return ranks, gained, ended, truncated, info

    def action_masks(self) -> Flags:
        """Which moves are legal on each board now, of shape (num_envs, 4)."""
        if not self._seeded:
            raise RuntimeError("call reset() before action_masks()")
        masks: Flags = self._observe(self._over)[1]["action_mask"].astype(np.bool_)
        return masks

    def render(self) -> tuple[Any, ...] | None:
        """Each board as text (`ansi`) or as a picture (`rgb_array`)."""
        if self.render_mode is None or not self._seeded:
            return None
        boards = [self._board(j) for j in range(self.num_envs)]
        if self.render_mode == "rgb_array":
            return tuple(picture(board) for board in boards)
        return tuple(board.grid() for board in boards)

    def _lane_seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        """One seed per board: consecutive, as given, or drawn; None to keep the present one."""
        if seed is None and self._seeded:
            return [None] * self.num_envs
        if isinstance(seed, Sequence | np.ndarray):
            if len(seed) != self.num_envs:
                raise ValueError(f"there are {self.num_envs} boards and {len(seed)} seeds")
            drawn = [None if self._seeded else int(self.np_random.integers(2**32)) for _ in seed]
            pairs = zip(seed, drawn, strict=True)
            return [d if s is None else randomness.checked_seed(s) for s, d in pairs]
        if seed is None:
            seed = int(self.np_random.integers(2**32))
        first = randomness.checked_seed(seed)
        super().reset(seed=first)
        return [randomness.checked_seed(first + j) for j in range(self.num_envs)]

    def _restart(self, which: Flags) -> None:
        """Start game `_games[j]` on every board j in `which`."""
        from lab2048.engine.batch import restart

        for j in [j for j in self._wide if which[j]]:
            del self._wide[j]
        for row in self._tally:  # row by row takes a third of the time
            row[which] = 0
        rows, cols = self.rules.rows, self.rules.cols
        restart(self._state, which, self._seeds, self._games, self._four, rows, cols)

    def _begin_next(self, which: Flags) -> None:
        """Start the next game on every board in `which`."""
        self._games += which.astype(np.uint64)
        self._restart(which)

    def _observe(self, illegal: Flags) -> tuple[Bytes, dict[str, Any]]:
        """The observations and the info of all boards."""
        from lab2048.engine.batch import observe

        ranks = np.empty((self.num_envs, self.rules.cells), np.uint8)
        masks = np.empty((self.num_envs, 4), np.int8)
        tiles = np.empty(self.num_envs, np.int64)
        observe(self._state, ranks, masks, tiles)
        for j, board in self._wide.items():
            ranks[j], masks[j], tiles[j] = board.ranks, _action_mask(board), board.max_tile
        facts = {
            "action_mask": masks,
            "illegal": illegal,
            "score": self._tally[0].copy(),
            "max_tile": tiles,
        }
        info: dict[str, Any] = {}
        for name, values in facts.items():
            info |= {name: values, f"_{name}": np.ones(self.num_envs, np.bool_)}
        return ranks.reshape(-1, self.rules.rows, self.rules.cols), info

    def _ended(self) -> Flags:
        """Which boards have no legal move."""
        ended: Flags = self._state[2] == 0
        for j, board in self._wide.items():
            ended[j] = board.is_terminal
        return ended

    def _truncated(self) -> Flags:
        """Which boards have had `max_illegal` illegal moves in a row."""
        if self.max_illegal is None:
            return np.zeros(self.num_envs, np.bool_)
        return np.asarray(self._tally[1] >= self.max_illegal)

    def _board(self, j: int) -> Board:
        """The current board j."""
        if j in self._wide:
            return self._wide[j]
        return Board.from_packed(int(self._state[0, j]), self.rules.rows, self.rules.cols)

    def _move_wide(self, moves: Counts, rewards: Counts) -> None:
        """Make the moves that the kernel could not: those with a tile above 32768."""
        from lab2048.engine.batch import ILLEGAL
        from lab2048.engine.slides import OVERFLOW

        boards, words, masks = self._state
        outgrown = np.flatnonzero(rewards >= OVERFLOW).tolist()
        for j in {*outgrown, *self._wide}:
            legal, reward, after = self._board(j).move(int(moves[j]))
            rewards[j] = reward if legal else ILLEGAL
            if legal:
                words[j] = (int(words[j]) + randomness.GOLDEN) & randomness.MASK64
                word = randomness.mix(int(words[j]))
                self._wide[j], _, _ = spawned(after, word, self._threshold)
                boards[j] = masks[j] = 0  # an empty board has no legal move for the kernel to make


def _where(which: Flags, values: NDArray[Any]) -> NDArray[Any]:
    """The values of some boards, and 0 for the others."""
    return values * which.reshape(-1, *[1] * (values.ndim - 1))


def _finals(ranks: Bytes, info: dict[str, Any], ended: Flags) -> dict[str, Any]:
    """The info of SAME_STEP about games that ended, as in Gymnasium's own environments."""
    info = {name: _where(ended, each) for name, each in info.items() if name[0] != "_"}
    observations = np.empty(len(ended), object)
    for j in np.flatnonzero(ended).tolist():
        observations[j] = ranks[j]
    final_info = {**info, **{f"_{key}": ended.copy() for key in info}}
    return {
        "final_obs": observations,
        "_final_obs": ended.copy(),
        "final_info": final_info,
        "_final_info": ended.copy(),
    }
