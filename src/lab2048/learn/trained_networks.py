"""The trained networks: list them, and pack one into a small file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab2048.learn.network_files import (
    FILE,
    network_folder,
    networks_folder,
    read_facts,
)
from lab2048.learn.registry import find_learner
from lab2048.learn.settings import Facts
from lab2048.tabular import Tabular

COLUMNS = ("kind", "board", "network", "trained", "seconds", "bytes")


class NetworkList(Tabular, Mapping[str, Facts]):
    """The trained networks by name: a description of each, or the error if it is damaged."""

    def __init__(self) -> None:
        paths = sorted(networks_folder().glob(f"*/{FILE}"))
        self._found = {path.parent.name: about(path) for path in paths}

    def __getitem__(self, name: str) -> Facts:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def as_json(self) -> dict[str, Facts]:
        """Return what `lab2048 train list --json` prints."""
        return self._found

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per network; a damaged one has only its size and the error."""
        names = (*COLUMNS, "error")
        return [
            {"name": name, **{each: facts.get(each) for each in names}}
            for name, facts in self.items()
        ]


def list_networks() -> NetworkList:
    """Return all trained networks by name.

    >>> import lab2048
    >>> _ = lab2048.train.ntuple("2x2", episodes=1000, out="listed")
    >>> list_networks()["listed"]["trained"]
    '1,000 games'
    """
    return NetworkList()


def about(path: Path) -> Facts:
    """Return the description of a network, or the error if it is damaged."""
    weight = {"bytes": path.stat().st_size}
    try:
        facts = read_facts(path)
        settings = find_learner(facts["kind"]).load_settings()
        told = {name: facts[name] for name in ("kind", "board", "seconds", settings.counted)}
        words = {"network": settings.describe(facts), "trained": settings.trained(facts)}
        return {**told, **words, **weight}
    except (ValueError, OSError) as error:
        return {"error": str(error), **weight}
    except (KeyError, TypeError) as error:
        return {"error": f"{path} is damaged: {type(error).__name__} {error}", **weight}


def pack_network(
    name: str,
    file: Path | str,
    *,
    step: float | None = None,
    visits: int | None = None,
    force: bool = False,
) -> str:
    """Write a network to a file as small as possible. Return the spec that plays it.

    A packed network plays, but cannot be trained further. Weights of n-tuple networks are rounded
    to multiples of `step`, and those visited less than `visits` times are left out. `force`
    replaces a file that exists.

    >>> from tempfile import TemporaryDirectory
    >>> import lab2048
    >>> _ = lab2048.train.ntuple("2x2", episodes=1000, out="large")
    >>> with TemporaryDirectory() as folder:
    ...     spec = pack_network("large", Path(folder) / "small.safetensors")
    ...     lab2048.exact_value(spec, "2x2").value > 50
    True
    """
    file = Path(file)
    if step is not None and not 0 < step < 1e6:
        raise ValueError(f"`step` is a number above 0, not {step:g}")
    check_packed_file(file, force=force)
    path = network_folder(name) / FILE
    if not path.exists():
        raise ValueError(f"there is no network {name}; lab2048 train list shows what there is")
    kind = str(read_facts(path)["kind"])
    find_learner(kind).load().pack(path, file, step=step, visits=visits)
    return f"{kind}:{file}"


def check_packed_file(file: Path, *, force: bool = False) -> None:
    """Raise a `ValueError` unless a packed network can be written to a file."""
    from lab2048.home import check_target

    if file.suffix != ".safetensors":
        raise ValueError(f"the name of the file ends in .safetensors, not {file.name[:40]!r}")
    if file.resolve().is_relative_to(networks_folder().resolve()):
        raise ValueError(f"{file} is among the networks that learn, and a packed one does not")
    check_target(file, force=force)
