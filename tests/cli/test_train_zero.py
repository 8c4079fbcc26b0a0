"""The command `train zero`."""

from __future__ import annotations

import json

import pytest

from lab2048.learn.network_files import FILE, network_folder, read_facts


@pytest.mark.slow
def test_train_and_evaluate(command, tmp_path, warm_home):
    picture = tmp_path / "a.svg"
    arguments = ["train", "zero", "--board", "2x2", "--preset", "tiny", "--simulations", "6"]
    arguments += ["--out", "a", "--threads", "1"]
    code, out, _ = command(
        *arguments,
        "--moves",
        "6k",
        "--parts",
        "2",
        "--against",
        "2x2",
        "--plot",
        str(picture),
        "--json",
    )
    found = json.loads(out)
    assert code == 0 and found["moves"] >= 6000 and len(found["log"]) >= 2
    assert 0 < found["log"][-1]["bare"]["agreement"] <= 1 and "<svg" in picture.read_text()
    assert found["exact"]["regret"] >= 0 and not any("exact" in each for each in found["log"])
    assert found["seconds_exact"] > 0
    code, _, error = command(*arguments, "--moves", "6k")
    assert code == 2 and "there is a network a already" in error
    resume = ["train", "zero", "--out", "a", "--resume", "--moves"]
    code, out, _ = command(*resume, "8k")
    assert code == 0 and read_facts(network_folder("a") / FILE)["moves"] >= 8000
    code, _, error = command(*resume, "8k")
    assert code == 0 and "there is nothing left to do" in error
    code, _, error = command(*resume, "9k", "--threads", "2")
    assert code == 2 and "a was begun with --threads 1" in error
    code, _, error = command(*resume, "9k", "--simulations", "7")
    assert code == 2 and "a was begun with --simulations 6, not 7" in error
    code, out, _ = command("train", "list")
    assert code == 0 and "tiny, 6 simulations" in out
    packed = tmp_path / "b.safetensors"
    assert command("train", "pack", "a", str(packed))[0] == 0
    players = ["zero:a,simulations=0", f"zero:{packed},simulations=0"]
    code, out, _ = command("evaluate", *players, "--board", "2x2", "--games", "30", "--json")
    results = json.loads(out)
    assert results[0]["score"] == results[1]["score"]


def test_bad_arguments_are_told_in_a_line(command, own_home):
    wrong = {
        (): "a training lasts for --moves, --steps or --minutes",
        ("--minutes", "-1"): "--minutes is a number above 0, not -1",
        ("--moves", "x"): "a number of moves is written like 5000",
        ("--moves", "1k", "--preset", "big"): "there is no preset 'big'",
        ("--moves", "1k", "--device", "cuda:9"): "there is no device 'cuda:9' here",
        ("--moves", "1k", "--resume"): "there is no network 3x3-zero to go on with",
        ("--moves", "1k", "--board", "9x9"): "9",
        ("--moves", "1k", "--rate", "nan"): "rate is a number from 1e-07 to 1, not nan",
        ("--moves", "1k", "--seed", "18446744073709551616"): "the seed of a training is a number",
    }
    for arguments, why in wrong.items():
        code, _, error = command("train", "zero", *arguments)
        assert code == 2 and why in error, (arguments, error)


@pytest.mark.slow
def test_a_table_to_measure_against_has_to_be_there(command, own_home):
    code, _, error = command("train", "zero", "--moves", "1k", "--against", "3x3")
    assert code == 2 and "there is no table 3x3" in error
