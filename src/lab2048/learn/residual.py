"""The network of self-play: a residual tower with a head for the policy and one for values.

A value is a number or, which is learnt faster, a distribution over many *bins*. The target is then
spread over the bins near it like a Gaussian, and the loss is the cross-entropy (Farebrother and
others, "Stop regressing", 2024). Bins have equal width in the square root of points, which gives
small values a finer resolution. They reach from a little below 0, since returns without luck may be
negative, to the largest score of the board.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils.fusion import fuse_conv_bn_eval

from lab2048.game import Rules
from lab2048.learn.encoding import planes
from lab2048.learn.gradient import Planes

BELOW = 1 / 8
"""How far bins reach below 0, in the root of points, as a share of how far they reach above."""
SPREAD = 0.75
"""The standard deviation of the Gaussian around a target, in bins."""
UNLIKELY = 20.0
"""How much the initial bias of the last bin's logit is lowered."""


class Layer(nn.Module):
    """A convolution of 3x3 cells that keeps the board's size, and batch normalisation."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.convolution: nn.Module = nn.Conv2d(before, after, 3, padding=1, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(after)

    def forward(self, x: Tensor) -> Tensor:
        """Return the same shape, except for the channels."""
        found: Tensor = self.norm(self.convolution(x))
        return found


class Block(nn.Module):
    """A residual block of two layers."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = Layer(channels, channels), Layer(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return the same shape."""
        return F.relu(x + self.second(F.relu(self.first(x))))


class Numbers(nn.Module):
    """Values that are plain numbers."""

    width = 1

    def forward(self, found: Tensor) -> Tensor:
        """Return the network's output as values."""
        return found[..., 0]

    def loss(self, found: Tensor, right: Tensor) -> Tensor:
        """Return the mean squared error."""
        return F.mse_loss(found[..., 0], right)


class Bins(nn.Module):
    """Values that are distributions over bins, as logits."""

    def __init__(self, width: int, largest: float) -> None:
        super().__init__()
        self.width = width
        # on the CPU even if the network is built on `meta` (`gradient.check_model`)
        places = torch.linspace(-BELOW, 1.0, width + 1, dtype=torch.float64, device="cpu")
        edges = places * largest**0.5
        self.spread = SPREAD * float(edges[1] - edges[0])
        roots = (edges[1:] + edges[:-1]) / 2
        self.register_buffer("edges", edges.float(), persistent=False)
        self.register_buffer("points", (roots * roots.abs()).float(), persistent=False)

    def forward(self, found: Tensor) -> Tensor:
        """Return the network's output as values: the means of its distributions."""
        return found.softmax(-1) @ self.get_buffer("points")

    def wanted(self, right: Tensor) -> Tensor:
        """Return targets as distributions over the bins."""
        edges = self.get_buffer("edges")
        roots = (right.sign() * right.abs().sqrt()).clamp(float(edges[0]), float(edges[-1]))
        below: Tensor = torch.special.ndtr((edges - roots[:, None]) / self.spread)
        return (below[:, 1:] - below[:, :-1]) / (below[:, -1:] - below[:, :1])

    def loss(self, found: Tensor, right: Tensor) -> Tensor:
        """Return the cross-entropy."""
        return F.cross_entropy(found, self.wanted(right))


def largest_score(rules: Rules) -> float:
    """Return a bound on the score: the board full, with a tile of each rank, if no 4 spawned."""
    return float(sum((rank - 1) << rank for rank in range(2, rules.cells + 2)))


class Tower(nn.Module):
    """A residual tower with two heads, each a convolutional and a linear layer."""

    def __init__(self, rules: Rules, channels: int, blocks: int, head: int, bins: int) -> None:
        super().__init__()
        self.values: Bins | Numbers = Bins(bins, largest_score(rules)) if bins else Numbers()
        self.planes = Planes(rules)
        self.entry = Layer(planes(rules), channels)
        self.blocks = nn.ModuleList(Block(channels) for _ in range(blocks))
        self.policy, self.moves = Layer(channels, head), nn.Linear(head * rules.cells, 4)
        self.value = Layer(channels, head)
        self.worths = nn.Linear(head * rules.cells, 2 * self.values.width)
        if isinstance(self.values, Bins):  # start with small values, as games are short at first
            with torch.no_grad():
                roots = self.values.get_buffer("points").abs().sqrt()
                unlikely = (UNLIKELY * roots / roots.max()).repeat(2)
                self.worths.bias.sub_(unlikely.to(self.worths.bias.device))

    def forward(self, ranks: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the moves, and those of the values as a state and as an afterstate.

        `values` turns the latter into values.
        """
        x = F.relu(self.entry(self.planes(ranks)))
        for block in self.blocks:
            x = block(x)
        policy, value = F.relu(self.policy(x)), F.relu(self.value(x))
        worths = self.worths(value.flatten(1)).unflatten(1, (2, self.values.width))
        return self.moves(policy.flatten(1)), worths


class Answers(nn.Module):
    """A tower that returns values instead of the input of `values`."""

    def __init__(self, tower: Tower) -> None:
        super().__init__()
        self.tower = tower

    def forward(self, ranks: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the moves, and the values as a state and as an afterstate."""
        logits, worths = self.tower(ranks)
        return logits, self.tower.values(worths)


def frozen(model: Tower) -> nn.Module:
    """Return a copy for inference, with every normalisation merged into its convolution."""
    found = Answers(copy.deepcopy(model)).eval()
    for each in found.modules():
        if isinstance(each, Layer):
            each.convolution = fuse_conv_bn_eval(each.convolution, each.norm)  # type: ignore[type-var, arg-type]
            each.norm = nn.Identity()
    return found.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]
