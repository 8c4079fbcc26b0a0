"""The network of self-play: a residual tower with a head for the policy and one for values."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils.fusion import fuse_conv_bn_eval

from lab2048.game import Rules
from lab2048.learn.encoding import planes
from lab2048.learn.learner import Planes


class Layer(nn.Module):
    """A convolution of 3x3 cells that keeps the board's size, and batch normalisation."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.convolution: nn.Module = nn.Conv2d(before, after, 3, padding=1, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(after)

    def forward(self, x: Tensor) -> Tensor:
        """Of the same shape, but for the channels."""
        found: Tensor = self.norm(self.convolution(x))
        return found


class Block(nn.Module):
    """Two layers, and what went in added to what comes out."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = Layer(channels, channels), Layer(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Of the same shape."""
        return F.relu(x + self.second(F.relu(self.first(x))))


class Tower(nn.Module):
    """A residual tower with two heads, each of a layer and a linear one."""

    def __init__(self, rules: Rules, channels: int, blocks: int, head: int) -> None:
        super().__init__()
        self.planes = Planes(rules)
        self.entry = Layer(planes(rules), channels)
        self.blocks = nn.ModuleList(Block(channels) for _ in range(blocks))
        self.policy, self.moves = Layer(channels, head), nn.Linear(head * rules.cells, 4)
        self.value, self.worths = Layer(channels, head), nn.Linear(head * rules.cells, 2)

    def forward(self, ranks: Tensor) -> tuple[Tensor, Tensor]:
        """The logits of the moves; and the values of the board, as a state and as an afterstate."""
        x = F.relu(self.entry(self.planes(ranks)))
        for block in self.blocks:
            x = block(x)
        policy, value = F.relu(self.policy(x)), F.relu(self.value(x))
        return self.moves(policy.flatten(1)), self.worths(value.flatten(1))


def frozen(model: nn.Module) -> nn.Module:
    """A copy to ask and not to teach, with every normalisation merged into its convolution."""
    found = copy.deepcopy(model).eval()
    for each in found.modules():
        if isinstance(each, Layer):
            each.convolution = fuse_conv_bn_eval(each.convolution, each.norm)  # type: ignore[type-var, arg-type]
            each.norm = nn.Identity()
    return found.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]
