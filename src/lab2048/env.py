"""The module that Gymnasium users name to load the environments: `lab2048.env:lab2048/Game-v0`."""

from lab2048.gym.environments import GameEnv, GameVectorEnv

__all__ = ["GameEnv", "GameVectorEnv"]
