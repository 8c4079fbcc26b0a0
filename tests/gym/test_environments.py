"""`lab2048.env`: the Gymnasium environments keep Gymnasium's rules and the game's."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from lab2048 import Board, Direction, Game, Rules
from lab2048.gym.environments import GameEnv, GameVectorEnv

ID = "lab2048/Game-v0"


def legal_actions(rng, masks):
    """A random legal action a row (any, where none is legal)."""
    return (rng.random(masks.shape) * masks).argmax(axis=-1)


# -- one environment ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("import gymnasium", "lab2048.env:lab2048/Game-v0"),
        ("import gymnasium", "lab2048:lab2048/Game-v0"),
        ("import lab2048, gymnasium", "lab2048.env:lab2048/Game-v0"),
        ("import gymnasium, lab2048", "lab2048/Game-v0"),
        ("import lab2048.env, gymnasium", "lab2048/Game-v0"),
    ],
)
def test_gymnasium_finds_it(imports, name):
    code = (
        f"{imports}\n"
        f"env = gymnasium.make({name!r}, rows=3, cols=5)\n"
        "assert env.observation_space.shape == (3, 5)\n"
        f"vec = gymnasium.make_vec({name!r}, 3, rows=2, cols=2)\n"
        "assert vec.observation_space.shape == (3, 2, 2)\n"
        "print(type(env.unwrapped).__name__, type(vec).__name__)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["GameEnv", "GameVectorEnv"]


@pytest.mark.parametrize("shape", [(4, 4), (3, 2), (2, 6)])
def test_gymnasiums_checker_is_content(shape):
    check_env(gymnasium.make(ID, rows=shape[0], cols=shape[1]).unwrapped)


def test_the_spaces_are_as_documented():
    env = GameEnv(3, 4)
    assert env.observation_space == gymnasium.spaces.Box(0, 17, (3, 4), np.uint8)
    assert env.action_space == gymnasium.spaces.Discrete(4)


def test_a_game_is_that_of_its_seed_move_by_move():
    env, rng = GameEnv(3, 3), np.random.default_rng(0)
    for index, seed in enumerate([9, None, None]):  # later games go on with the same seed
        obs, info = env.reset(seed=seed)
        game = Game(Rules(3, 3), 9, index=index)
        assert obs.ravel().tolist() == list(game.board.ranks)
        terminated = False
        while not terminated:
            assert [Direction(d) for d in np.flatnonzero(info["action_mask"])] == list(
                game.board.legal_moves
            )
            action = legal_actions(rng, info["action_mask"])
            obs, reward, terminated, truncated, info = env.step(action)
            assert reward == game.play(int(action))
            assert obs.ravel().tolist() == list(game.board.ranks)
            assert terminated == game.over
            assert not truncated and not info["illegal"]
        assert info["action_mask"].dtype == np.int8
        assert not info["action_mask"].any()


def test_an_illegal_move_changes_nothing():
    env = GameEnv(2, 2)
    env.reset(seed=1)
    env.game = Game(Rules(2, 2), 1, start=Board.parse("2 4 / . ."))
    obs, reward, terminated, _, info = env.step(Direction.LEFT)
    assert obs.tolist() == [[1, 2], [0, 0]]
    assert (reward, terminated, info["illegal"]) == (0.0, False, True)
    assert info["action_mask"].tolist() == [0, 0, 1, 0]
    *_, info = env.step(Direction.DOWN)
    assert not info["illegal"]


def test_an_environment_goes_on_past_32768():
    env = GameEnv()
    env.reset(seed=1)
    start = Board.parse("65536 65536 . . / . . . . / . . . . / . . . .")
    env.game = Game(Rules(4, 4), 1, start=start)
    obs, reward, terminated, _, _ = env.step(Direction.LEFT)
    assert (obs[0, 0], reward, terminated) == (17, 131072.0, False)
    assert env.observation_space.contains(obs)


def test_rendering():
    env = GameEnv(2, 3, render_mode="ansi")
    assert env.render() is None
    env.reset(seed=1)
    env.game = Game(Rules(2, 3), 1, start=Board.parse("2 16 . / . 131072 4"))
    assert env.render() == "     2     16      .\n     . 131072      4\nscore 0\n"
    env.render_mode = "rgb_array"
    image = env.render()
    assert image.shape == (152, 224, 3) and image.dtype == np.uint8
    colours = {tuple(image[8 + 2, 8 + 2 + 72 * c]) for c in range(3)}
    assert len(colours) == 3  # 2, 16 and empty look different
    with pytest.raises(ValueError, match="render_mode is"):
        GameEnv(render_mode="human")


def test_info_has_the_score_and_the_largest_tile():
    env, rng = GameEnv(3, 3), np.random.default_rng(0)
    obs, info = env.reset(seed=3)
    assert (info["score"], info["max_tile"]) == (0, 2 ** obs.max())
    score = 0
    for _ in range(30):
        assert env.action_masks().dtype == np.bool_
        assert (env.action_masks() == info["action_mask"]).all()
        obs, reward, *_, info = env.step(legal_actions(rng, info["action_mask"]))
        score += reward
        assert (info["score"], info["max_tile"]) == (score, 2 ** obs.max())
    assert score > 0
    wrapped = gymnasium.make(ID, rows=3, cols=3)
    wrapped.reset(seed=3)
    assert wrapped.get_wrapper_attr("action_masks")().shape == (4,)


def test_an_episode_of_illegal_moves_is_truncated():
    def stuck(env, moves):
        env.reset(seed=1, options={"start": "2 4 / . ."})
        return [env.step(move)[3] for move in moves]

    left, down = Direction.LEFT, Direction.DOWN
    assert stuck(GameEnv(2, 2), [left] * 100) == [False] * 99 + [True]
    env = GameEnv(2, 2, max_illegal=2)
    assert stuck(env, [left, down]) == [False, False]  # a legal move begins the count anew
    assert stuck(env, [left, left]) == [False, True]
    assert not any(stuck(GameEnv(2, 2, max_illegal=None), [left] * 300))
    for bad in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="max_illegal is a whole number from 1 on, or None"):
            GameVectorEnv(2, max_illegal=bad)


def test_step_before_reset_is_refused():
    with pytest.raises(RuntimeError, match="reset"):
        GameEnv().action_masks()
    with pytest.raises(RuntimeError, match="reset"):
        GameVectorEnv(2).action_masks()
    with pytest.raises(RuntimeError, match="reset"):
        GameEnv().step(0)
    with pytest.raises(RuntimeError, match="reset"):
        GameVectorEnv(2).step(np.zeros(2, np.int64))


# -- many at once ------------------------------------------------------------------------------


def run_both(mode, shape, boards, steps, actions, **options):
    """Step the vector environment beside Gymnasium's own, made of single ones."""
    ours = GameVectorEnv(boards, *shape, autoreset_mode=mode, **options)
    theirs = SyncVectorEnv([lambda: GameEnv(*shape, **options)] * boards, autoreset_mode=mode)
    assert ours.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"] is mode
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    a, b = ours.reset(seed=5), theirs.reset(seed=5)
    assert (a[0] == b[0]).all()
    for _ in range(steps):
        chosen = actions(a[-1])
        a, b = ours.step(chosen), theirs.step(chosen)
        for mine, other in zip(a[:4], b[:4], strict=True):
            assert mine.dtype == other.dtype
            assert (mine == other).all()
        same_info(a[4], b[4])
        masks = ours.action_masks()
        assert masks.dtype == np.bool_ and (masks == np.stack(theirs.call("action_masks"))).all()
        assert (masks == a[4]["action_mask"]).all()
    return a


def same_info(a, b):
    assert a.keys() == b.keys()
    for key, mine in a.items():
        if isinstance(mine, dict):
            same_info(mine, b[key])
            continue
        there = a.get(f"_{key}", np.ones(len(mine), bool))
        for j in np.flatnonzero(there):
            assert np.array_equal(mine[j], b[key][j]), key


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("shape", [(3, 3), pytest.param((2, 3), marks=pytest.mark.slow)])
def test_it_is_the_same_as_many_single_ones(mode, shape):
    rng = np.random.default_rng(1)
    run_both(mode, shape, 7, 150, lambda info: rng.integers(0, 4, 7))
    run_both(mode, shape, 7, 150, lambda info: legal_actions(rng, info["action_mask"]))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_boards_that_are_stuck_are_truncated_like_single_ones(mode):
    rng, seen = np.random.default_rng(4), []

    def actions(info):
        seen.append(info)
        return rng.integers(0, 2, 7)  # up and right only: most games are stuck soon

    run_both(mode, (3, 3), 7, 150, actions, max_illegal=3)
    scores = np.array([info["score"] for info in seen])
    assert (np.diff(scores, axis=0) < 0).sum() > 20  # so many games have begun anew


def test_more_boards_than_lanes_and_not_a_multiple():
    rng = np.random.default_rng(2)
    run_both(AutoresetMode.NEXT_STEP, (3, 3), 131, 60, lambda info: rng.integers(0, 4, 131))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_boards_past_32768_are_stepped_like_the_others(mode):
    ours = GameVectorEnv(3, autoreset_mode=mode)
    ours.reset(seed=1)
    pairs = Board.parse("32768 32768 . . / 2 . . . / . . . . / . . . .")
    single = GameEnv()
    single.reset(seed=2)
    single.game = Game(Rules(4, 4), 2, start=pairs)
    single.game.spawns = [(0, 1), (0, 1)]  # two words of the stream are used up by the start
    ours._state[0, 1] = pairs.packed
    ours._state[2, 1] = sum(1 << d for d in pairs.legal_moves)
    rng = np.random.default_rng(3)
    moves = [Direction.LEFT]
    mask = None
    for step in range(400):
        action = moves[step] if step < len(moves) else legal_actions(rng, mask)
        if step % 7 == 3:
            action = 3 - action  # sometimes one that may be illegal
        obs, reward, ended, _, info = ours.step(np.array([0, action, 1]))
        one, gained, over, _, single_info = single.step(int(action))
        assert (reward[1], ended[1]) == (gained, over)
        if over and mode is AutoresetMode.SAME_STEP:
            assert (info["final_obs"][1] == one).all()
            assert (info["final_info"]["action_mask"][1] == 0).all()
        else:
            assert (obs[1] == one).all()
            assert info["illegal"][1] == single_info["illegal"]
            assert (info["action_mask"][1] == single_info["action_mask"]).all()
        mask = single_info["action_mask"]
        if over:
            break
    assert over and one.max() == 16 and step > 20
    if mode is AutoresetMode.NEXT_STEP:
        obs, reward, ended, _, _ = ours.step(np.array([0, 0, 0]))
        assert (reward[1], ended[1]) == (0, False)
    assert obs[1].max() <= 2  # the next game has begun
    assert not ours._wide


def test_every_step_returns_arrays_of_its_own():
    env = GameVectorEnv(4)
    first, info = env.reset(seed=1)
    kept, mask = first.copy(), info["action_mask"].copy()
    for _ in range(5):
        env.step(np.array([0, 1, 2, 3]))
    assert (first == kept).all() and (info["action_mask"] == mask).all()


def test_seeds_of_many_boards():
    env = GameVectorEnv(3)
    a, _ = env.reset(seed=[4, 5, 6])
    b, _ = env.reset(seed=4)
    assert (a == b).all()
    c, _ = env.reset()
    assert (c != b).any()
    d, _ = env.reset(seed=[4, None, 6])
    assert (d[[0, 2]] == a[[0, 2]]).all()
    with pytest.raises(ValueError, match="3 boards and 2 seeds"):
        env.reset(seed=[1, 2])


def test_seeds_may_go_on_where_others_begin_anew():
    ours, theirs = GameVectorEnv(3, 2, 2), SyncVectorEnv([lambda: GameEnv(2, 2)] * 3)
    for seed in ([4, 5, 6], [None, 7, None], None, [8, None, None], np.array([1, 2, 3])):
        one = seed.tolist() if isinstance(seed, np.ndarray) else seed
        assert (ours.reset(seed=seed)[0] == theirs.reset(seed=one)[0]).all()
    with pytest.raises(ValueError, match="a seed is a whole number"):
        ours.reset(seed=True)


def test_it_can_be_copied_and_its_size_may_be_of_numpy():
    env = GameVectorEnv(3, rows=np.int8(4), cols=np.int8(4))
    env.reset(seed=1)
    env.step(np.array([0, 1, 2]))
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert (other.step(np.array([1, 2, 3]))[0] == copy.deepcopy(env).step([1, 2, 3])[0]).all()


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="num_envs is at least 1"):
        GameVectorEnv(0)
    with pytest.raises(ValueError, match="NextStep"):
        GameVectorEnv(1, autoreset_mode=AutoresetMode.DISABLED)
    env = GameVectorEnv(2)
    env.reset(seed=1)
    for actions in ([0], [0, 4], [0, -1], [[0, 1]], [0.0, 1.7], [True, False]):
        with pytest.raises(ValueError, match="2 whole numbers from 0 to 3"):
            env.step(np.array(actions))


def test_more_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="render_mode is"):
        GameVectorEnv(1, render_mode="human")
    with pytest.raises(ValueError, match="has no options"):
        GameVectorEnv(1).reset(options={"start": "2 . / . ."})
    env = GameEnv()
    env.reset(seed=1)
    for action in (1.7, 4, -1, None):
        with pytest.raises(ValueError, match="a direction is"):
            env.step(action)


def test_the_mode_may_be_named_and_a_game_may_begin_anywhere():
    mode = GameVectorEnv(1, autoreset_mode="SameStep").metadata["autoreset_mode"]
    assert mode is AutoresetMode.SAME_STEP
    env = GameEnv(2, 2)
    for start in ("2 4 / . .", Board.parse("2 4 / . ."), [[2, 4], [0, 0]]):
        observation, _ = env.reset(options={"start": start})
        assert observation.tolist() == [[1, 2], [0, 0]]


def test_gymnasiums_wrappers_work_on_it():
    env = gymnasium.make_vec(ID, 8, rows=3, cols=3)
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(env)
    _, info = env.reset(seed=1)
    rng = np.random.default_rng(0)
    returns = []
    for _ in range(200):
        *_, info = env.step(legal_actions(rng, info["action_mask"]))
        if "episode" in info:
            returns += info["episode"]["r"][info["_episode"]].tolist()
    assert len(returns) > 20 and max(returns) > 20


def test_the_vector_environment_renders_every_board():
    env = GameVectorEnv(2, 2, 2, render_mode="ansi")
    env.reset(seed=1)
    assert len(env.render()) == 2
    env.render_mode = "rgb_array"
    assert env.render()[1].shape == (152, 152, 3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ppo_of_stable_baselines3_trains_on_it():
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_checker import check_env as check_for_ppo

    check_for_ppo(gymnasium.make(ID, rows=3, cols=3).unwrapped)
    env = gymnasium.make(ID, rows=3, cols=3, max_episode_steps=200)
    model = PPO("MlpPolicy", env, n_steps=128, batch_size=64, n_epochs=2, seed=1)
    before = [p.clone() for p in model.policy.parameters()]
    model.learn(512)
    assert model.num_timesteps == 512
    assert any((a != b).any() for a, b in zip(before, model.policy.parameters(), strict=True))
