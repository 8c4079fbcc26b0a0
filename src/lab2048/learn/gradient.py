"""What all neural networks need: devices, input, gradient steps, and tensors to store.

Torch is the `neural` extra. Only this module and those that build on it (`neural`, the networks
and the learners) import it, and they are imported only when a network is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
"""Prefixes of the names of tensors: the network's, and Adam's, which only training needs."""
MOMENTS = ("exp_avg", "exp_avg_sq")


def pick_device(name: str = "auto") -> torch.device:
    """Return the device of a name; `auto` is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        # torch raises the last one for a kind of device that it was built without
        why = str(error).strip().splitlines()[0][:100]
        raise ValueError(
            f"there is no device {name[:40]!r} here, auto finds one that works: {why}"
        ) from None
    return device


class Planes(nn.Module):
    """From the ranks of cells to one-hot planes."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self.rows, self.cols = rules.rows, rules.cols
        self.register_buffer("eye", torch.eye(planes(rules)), persistent=False)

    def forward(self, ranks: Tensor) -> Tensor:
        """Return planes of shape (boards, planes, rows, cols)."""
        found = F.embedding(ranks, self.get_buffer("eye"))
        shape = (len(ranks), self.rows, self.cols, found.shape[-1])  # works for 0 boards too
        return found.view(shape).permute(0, 3, 1, 2)


def parameters(model: nn.Module) -> int:
    """Return the number of trainable parameters."""
    return sum(each.numel() for each in model.parameters())


def inputs(boards: Words, rules: Rules, device: torch.device) -> Tensor:
    """Return the input of a network for boards: their ranks, on the device."""
    return torch.from_numpy(ranks(boards, rules)).to(device)


def asked(model: nn.Module, rules: Rules, device: torch.device) -> Callable[[Words], Any]:
    """Return a function from boards to the network's outputs as arrays, for players.

    It asks the network itself, not a copy, in evaluation mode; one in training is put back.
    """
    model = model.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]

    def ask(boards: Words) -> Any:
        with torch.inference_mode(), evaluating(model):
            found = model(inputs(boards, rules, device))
            return (
                found.cpu().numpy()
                if isinstance(found, Tensor)
                else [each.cpu().numpy() for each in found]
            )

    return ask


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Have a network in evaluation mode, in which dropout and the like do nothing."""
    training = model.training
    if training:
        model.eval()
    try:
        yield
    finally:
        if training:
            model.train()


class NetworkWithAdam:
    """A network and its Adam optimiser; `clip` is the largest norm of a gradient."""

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
        """Take a gradient step; a `DivergedError` if the loss is infinite or NaN."""
        if not torch.isfinite(loss):
            raise DivergedError("the loss is not a number any more; a smaller `rate` may help")
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        self.steps += 1

    def tensors(self) -> Tensors:
        """Return the weights and the state of Adam: all tensors needed to resume."""
        found = model_tensors(self.model)
        for name, parameter in self.model.named_parameters():
            state = self.optimizer.state.get(parameter, {})
            for moment in MOMENTS:
                if moment in state:
                    found[f"{ADAM}{name}.{moment}"] = as_array(state[moment])
        return found

    def load(self, tensors: Tensors, steps: int) -> None:
        """Restore weights, the state of Adam and the number of steps."""
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
    """Return a copy of a tensor, which later steps do not change."""
    return np.array(tensor.detach().cpu().numpy(), order="C")


def model_tensors(model: nn.Module) -> Tensors:
    """Return the weights of a network by name, with the prefix `MODEL`."""
    return {f"{MODEL}{name}": as_array(tensor) for name, tensor in model.state_dict().items()}


def load_model(model: nn.Module, tensors: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Load stored weights into a network; a `ValueError` if they do not fit it."""
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
    """Raise a `ValueError` unless the tensors of a file have the shapes of the network.

    The network is built on the device `meta`, where tensors take no memory.
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
    """Cross-entropy with soft shares of moves, plus half the expected loss of the policy.

    The share of a move is proportional to exp(-lost), so `lost` follows from the shares. Only
    illegal moves have a share of 0; their logits in `found` have to be masked by the caller.
    """
    lost = (wanted.amax(1, keepdim=True) / wanted.where(wanted > 0, torch.inf)).log()
    expected = (found.softmax(1) * lost.clamp(min=0)).sum(1).mean()
    return F.cross_entropy(found, wanted) + expected / 2
