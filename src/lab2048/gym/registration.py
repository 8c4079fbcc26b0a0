"""Register the environments with Gymnasium, without loading them.

Gymnasium 1.0 no longer looks for plugins, so a name is known only after a module has registered it:
`lab2048.env` does, and so does `lab2048` itself if Gymnasium was imported before it.
"""

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
