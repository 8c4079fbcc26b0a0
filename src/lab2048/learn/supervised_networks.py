"""The five networks of the supervised study (2025), with the numbers of weights that it reports.

Convolutions are of 2x2 cells. Before each, zeros are padded on the left and on the top (`cnn4`,
`cnn5`), so that the board keeps its size, or on all sides (`cnn5_sym`), so that it grows. ReLU
follows every layer but the last.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from lab2048.game import Rules
from lab2048.learn.encoding import planes
from lab2048.learn.gradient import Planes


class Convolutional(nn.Module):
    """Convolutions of 2x2 cells, followed by a linear layer."""

    def __init__(self, rules: Rules, channels: int, layers: int, around: bool) -> None:
        super().__init__()
        self.planes = Planes(rules)
        self.zeros = (1, 1, 1, 1) if around else (1, 0, 1, 0)  # left, right, top, bottom
        sizes = [planes(rules)] + [channels] * layers
        self.convolutions = nn.ModuleList(
            nn.Conv2d(sizes[k], sizes[k + 1], 2) for k in range(layers)
        )
        more = layers if around else 0
        self.last = nn.Linear(channels * (rules.rows + more) * (rules.cols + more), 4)

    def forward(self, ranks: Tensor) -> Tensor:
        """Four logits per board."""
        x = self.planes(ranks)
        for convolution in self.convolutions:
            x = F.relu(convolution(F.pad(x, self.zeros)))
        found: Tensor = self.last(x.flatten(1))
        return found


class Perceptron(nn.Module):
    """Fully connected layers."""

    def __init__(self, rules: Rules, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.planes = Planes(rules)
        sizes = [rules.cells * planes(rules), *hidden, 4]
        self.layers = nn.ModuleList(
            nn.Linear(sizes[k], sizes[k + 1]) for k in range(len(sizes) - 1)
        )

    def forward(self, ranks: Tensor) -> Tensor:
        """Four logits per board."""
        x = self.planes(ranks).flatten(1)
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        found: Tensor = self.layers[-1](x)
        return found
