"""What neural networks have in common: where they run, how they take a step, what is stored.

Torch is the `neural` extra. Only this module and those that build on it import it (`neural`, the
networks and the learners), and they are imported when a network is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from lab2048.engine.arrays import Words
from lab2048.game import Rules
from lab2048.learn.encoding import planes, ranks
from lab2048.learn.learner import DivergedError
from lab2048.learn.network_files import Shapes, Tensors

MODEL, ADAM = "model.", "adam."
"""How the names of tensors begin that are the network, and that only training needs."""
MOMENTS = ("exp_avg", "exp_avg_sq")


def pick_device(name: str = "auto") -> torch.device:
    """The device of a name; `auto` is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        # the last is what torch raises for a kind of device that it was built without
        why = str(error).strip().splitlines()[0][:100]
        raise ValueError(
            f"there is no device {name[:40]!r} here, auto takes what there is: {why}"
        ) from None
    return device


class Planes(nn.Module):
    """From the ranks of cells to planes of zeros and ones."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.rows, self.cols = rules.rows, rules.cols
        self.register_buffer("eye", torch.eye(planes(rules)), persistent=False)

    def forward(self, ranks: Tensor) -> Tensor:
        """Of shape (boards, planes, rows, cols)."""
        found = F.embedding(ranks, self.get_buffer("eye"))
        shape = (len(ranks), self.rows, self.cols, found.shape[-1])  # also of no boards
        return found.view(shape).permute(0, 3, 1, 2)


def parameters(model: nn.Module) -> int:
    """How many numbers a network learns."""
    return sum(each.numel() for each in model.parameters())


def inputs(boards: Words, rules: Rules, device: torch.device) -> Tensor:
    """Boards as a network is given them."""
    return torch.from_numpy(ranks(boards, rules)).to(device)


def asked(model: nn.Module, rules: Rules, device: torch.device) -> Callable[[Words], Any]:
    """A network as players ask it: boards to arrays."""
    model = model.to(device=device, memory_format=torch.channels_last).eval()  # type: ignore[call-overload]

    def ask(boards: Words) -> Any:
        with torch.inference_mode():
            found = model(inputs(boards, rules, device))
            return (
                found.cpu().numpy()
                if isinstance(found, Tensor)
                else [each.cpu().numpy() for each in found]
            )

    return ask


class NetworkWithAdam:
    """A network, and the optimiser that teaches it; with `clip` no gradient is longer than that."""

    def __init__(
        self,
        model: nn.Module,
        device: torch.device,
        decay: float = 0.0,
        clip: float | None = None,
    ) -> None:
        self.device, self.clip = device, clip
        self.model: Any = model.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = torch.optim.Adam(model.parameters(), weight_decay=decay)
        self.steps = 0

    def step(self, loss: Tensor, rate: float) -> None:
        """Make a loss smaller; a `DivergedError` if it has become too large for that."""
        if not torch.isfinite(loss):
            raise DivergedError("the loss is not a number any more; a smaller `rate` may help")
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        self.steps += 1

    def tensors(self) -> Tensors:
        """All that it takes to go on."""
        found = model_tensors(self.model)
        for name, parameter in self.model.named_parameters():
            state = self.optimizer.state.get(parameter, {})
            for moment in MOMENTS:
                if moment in state:
                    found[f"{ADAM}{name}.{moment}"] = as_array(state[moment])
        return found

    def load(self, tensors: Tensors, steps: int) -> None:
        """Go on from what was stored."""
        load_model(self.model, tensors)
        self.steps = steps
        for name, parameter in self.model.named_parameters():
            if f"{ADAM}{name}.{MOMENTS[0]}" in tensors:
                state: dict[str, Any] = {"step": torch.tensor(float(steps))}
                for moment in MOMENTS:
                    stored = torch.from_numpy(tensors[f"{ADAM}{name}.{moment}"].copy())
                    state[moment] = torch.empty_like(parameter).copy_(stored)
                self.optimizer.state[parameter] = state


def as_array(tensor: Tensor) -> np.ndarray[Any, Any]:
    """A copy of a tensor, which stays as it is when training goes on."""
    return np.array(tensor.detach().cpu().numpy(), order="C")


def model_tensors(model: nn.Module) -> Tensors:
    """The weights of a network by their names."""
    return {f"{MODEL}{name}": as_array(tensor) for name, tensor in model.state_dict().items()}


def load_model(model: nn.Module, tensors: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Put stored weights into a network; a `ValueError` if they are those of another one."""
    found = {
        name.removeprefix(MODEL): torch.from_numpy(tensor.copy())
        for name, tensor in tensors.items()
        if name.startswith(MODEL)
    }
    try:
        model.load_state_dict(found)
    except RuntimeError:
        raise ValueError("its weights are those of another network") from None


def check_model(build: Callable[[], nn.Module], shapes: Shapes) -> None:
    """A `ValueError` unless the tensors of a file, by their shapes, fit the network.

    The network is only sketched for that: on the device `meta` tensors take no memory.
    """
    with torch.device("meta"):
        wanted = {name: tuple(each.shape) for name, each in build().state_dict().items()}
    found = {name: shape for name, (_, shape) in shapes.items()}
    model = {n.removeprefix(MODEL): shape for n, shape in found.items() if n.startswith(MODEL)}
    moments = {n: shape for n, shape in found.items() if n.startswith(ADAM)}
    if model != wanted or any(
        shape != wanted.get(name.removeprefix(ADAM).rpartition(".")[0])
        for name, shape in moments.items()
    ):
        raise ValueError("its weights are those of another network")


def soft_loss(found: Tensor, wanted: Tensor) -> Tensor:
    """The cross-entropy of soft shares of moves, plus half of what is lost on average.

    Soft shares fall as exp(-lost), and none but illegal moves are without, whose logits in `found`
    are the least: so the shares tell what is lost.
    """
    lost = (wanted.amax(1, keepdim=True) / wanted.where(wanted > 0, torch.inf)).log()
    expected = (found.softmax(1) * lost.clamp(min=0)).sum(1).mean()
    return F.cross_entropy(found, wanted) + expected / 2
