"""Tells Gymnasium what there is; loaded by its plugin entry point, so it imports almost nothing."""

from __future__ import annotations


def register_envs() -> None:
    """Register `lab2048/Game-v0`."""
    from gymnasium.envs.registration import register, registry

    if "lab2048/Game-v0" not in registry:
        register(
            id="lab2048/Game-v0",
            entry_point="lab2048.env:GameEnv",
            vector_entry_point="lab2048.env:GameVectorEnv",
        )
