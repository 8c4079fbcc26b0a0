"""The command `train supervised`."""

from __future__ import annotations

import json

import pytest

from lab2048.data import moves as data
from lab2048.game import Rules
from lab2048.learn.network_files import FILE, network_folder, read_facts
from tests.learn.small_students import some_moves

# -- training ----------------------------------------------------------------------------------


# -- commands ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_train_stop_resume_list_and_pack(command, tmp_path, warm_home):
    path = tmp_path / "moves.txt"
    data.write_moves(path, [some_moves(Rules(2, 2), 2000, "optimal")], Rules(2, 2), {})
    arguments = [
        "train", "supervised", "--board", "2x2", "--network", "mlp4", "--data", str(path), "--out",
        "a", "--batch", "100", "--threads", "1",
    ]  # fmt: skip
    picture = tmp_path / "a.svg"
    code, out, error = command(
        *arguments, "--epochs", "2", "--test", str(path), "--plot", str(picture), "--json"
    )
    assert code == 0 and "cells are of the tile after the move" in error
    found = json.loads(out)
    assert [each["epoch"] for each in found["log"]] == [1, 2] and "test_loss" in found["log"][0]
    assert "<svg" in picture.read_text()
    code, _, error = command(*arguments, "--epochs", "2")
    assert code == 2 and "there is a network a already: --resume goes on with it" in error
    code, out, _ = command("train", "supervised", "--out", "a", "--resume", "--epochs", "4")
    assert code == 0 and "a is ready: lab2048 evaluate supervised:a --board 2x2" in out
    assert read_facts(network_folder("a") / FILE)["epoch"] == 4
    code, _, error = command("train", "supervised", "--out", "a", "--resume", "--seed", "5")
    assert code == 2 and "a was begun with --seed 1, not 5" in error
    code, out, _ = command("train", "list")
    assert code == 0 and "supervised" in out and "4 of 4 epochs" in out
    packed = tmp_path / "b.safetensors"
    code, out, _ = command("train", "pack", "a", str(packed))
    assert code == 0 and packed.stat().st_size < (network_folder("a") / FILE).stat().st_size / 2
    assert read_facts(packed)["data"] == ["moves.txt"]
    code, out, _ = command(
        "evaluate",
        "supervised:a",
        f"supervised:{packed}",
        "--board",
        "2x2",
        "--games",
        "50",
        "--json",
    )
    results = json.loads(out)
    assert results[0]["score"] == results[1]["score"] and results[0]["optimal"]["agreement"] > 0.9


def test_bad_arguments_are_told_in_a_line(command, tmp_path, own_home):
    path = tmp_path / "a.txt"
    path.write_text("nonsense\n")
    wrong = {
        ("--data", str(path)): "line 1: a line is 'r', 16 ranks",
        (): "it needs moves to learn from: --data FILE",
        ("--data", str(path), "--device", "cuda:9"): "there is no device 'cuda:9' here",
        ("--data", str(path), "--network", "x"): "there is no network 'x'",
        ("--data", str(path), "--plot", "x.gif"): "a picture is .svg, .png or .pdf",
        ("--data", str(path), "--soft", "3"): "--soft is for labels",
        ("--data", str(path), "--rate", "-1"): "rate is a number from 1e-07 to 1, not -1",
        ("--data", str(path), "--seed", str(1 << 64)): "the seed of a training is a number from 0",
        ("--resume",): "there is no network 4x4-cnn5 to go on with",
    }
    for arguments, why in wrong.items():
        code, _, error = command("train", "supervised", *arguments)
        assert code == 2 and why in error, error
    (tmp_path / "b.txt").write_text("\n")
    code, _, error = command("train", "supervised", "--data", str(tmp_path / "b.txt"))
    assert code == 2 and "there are no moves in the data" in error
    assert (
        not network_folder("4x4-cnn5").exists() or not (network_folder("4x4-cnn5") / FILE).exists()
    )
