"""The settings of the temporal-difference learning of n-tuple networks (`td`)."""

from __future__ import annotations

import hashlib
from dataclasses import MISSING, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from lab2048.formatting import nearest
from lab2048.game import Rules
from lab2048.game.notation import counted
from lab2048.game.randomness import checked_seed
from lab2048.learn.settings import Facts, LearnerSettings, setting

if TYPE_CHECKING:
    from lab2048.learn.ntuple import Network

RATES = {"td": 0.1, "tc": 1.0, "state": 0.1, "q": 0.1}
"""How fast each rule learns, unless told otherwise."""
SMALL = 12
"""A board of fewer cells is small: from one move to the next, most of what is looked up stays.
Learning backward then goes from value to value that it has just changed, and overshoots."""
SHORT, SHORT_RATE = 5, 0.5
"""How fast temporal coherence learns backward if a tuple has fewer cells: its images look the same
on many a board and change the same weight several times, so that whole steps go ever further."""
METHODS = ("td", "tc", "otd", "otc", "td+tc", "otd+tc", "state", "q")
ORDERS = ("backward", "forward")


class Phase(NamedTuple):
    """A part of a training that learns by one rule."""

    rule: str
    """td, state or q: what is learnt."""
    coherent: bool
    rate: float


@dataclass(frozen=True)
class NTupleSettings(LearnerSettings):
    """What the training of an n-tuple network depends on, besides how long it lasts."""

    network: Network = setting(  # noqa: RUF009
        MISSING, "A name such as 4x6, or tuples of cells in hexadecimal", kind=str
    )
    method: str = setting("tc", "The rule of learning", choices=METHODS)
    rate: float | None = setting(
        None, "How fast to learn; 0.1, for tc 1 or 0.5", kind=float, low=1e-6, high=2
    )
    """Of the first phase (`RATES`). At 0 nothing is learnt, above 2 no step gets nearer."""
    initial: float | None = setting(
        None, "What boards are worth at first (otd, otc)", kind=float, low=-1e9, high=1e9
    )
    """0, or if the method is optimistic `usual_initial`."""
    gamma: float = setting(1.0, "Discount per move", low=0, high=1)
    epsilon: float = setting(0.0, "The chance of a random move (q)", low=0, high=1)
    order: str | None = setting(
        None, "backward, after a game (4x4), or forward", kind=str, metavar="TEXT"
    )
    """Backward; on a small board, and of Q-learning, forward."""
    block: str = setting("", "Games between two lines", metavar="N|log", stored=False)

    threads_about: ClassVar[str] = "As many as cores; 1 below 12 cells."
    counted: ClassVar[str] = "games"
    goal: ClassVar[str] = "episodes"
    limits: ClassVar[tuple[str, ...]] = ("moves",)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            near = nearest(self.method, METHODS)
            raise ValueError(f"there is no method {self.method[:40]!r}; {near}")
        optimistic = self.method.startswith("o")
        if self.initial is None:
            self._set(initial=usual_initial(self.rules) if optimistic else 0.0)
        elif self.initial and not optimistic:
            raise ValueError(f"only otd, otc and otd+tc have an initial value, not {self.method}")
        if self.order is None:
            small = self.rules.cells < SMALL
            self._set(order="forward" if self.method == "q" or small else "backward")
        if self.rate is None:
            self._set(rate=self._usual_rates()[0])
        if self.order not in ORDERS:
            raise ValueError(f"the order is backward or forward, not {str(self.order)[:40]!r}")
        if self.method == "q" and self.order == "backward":
            raise ValueError("Q-learning is forward: its target is the best move, not the one made")
        if self.epsilon and self.method != "q":
            raise ValueError("only Q-learning explores: epsilon is for the method q")
        self._set(block=str(self.block))
        self.block_games()
        super().__post_init__()

    def _check_seed(self) -> None:
        self._set(seed=checked_seed(self.seed))

    def _set(self, **values: Any) -> None:
        """Set fields, which nobody else may."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def phases(self) -> list[Phase]:
        """What is learnt one after the other."""
        assert self.rate is not None
        rates = [self.rate, *self._usual_rates()[1:]]
        return [
            Phase("td" if name == "tc" else name, name == "tc", rate)
            for name, rate in zip(self._parts(), rates, strict=True)
        ]

    def _parts(self) -> list[str]:
        """What the method consists of, without the initial value."""
        return [name.removeprefix("o") for name in self.method.split("+")]

    def _usual_rates(self) -> list[float]:
        """How fast each part learns, unless told otherwise."""
        short = self.order == "backward" and min(map(len, self.network.tuples)) < SHORT
        return [SHORT_RATE if short and name == "tc" else RATES[name] for name in self._parts()]

    def block_games(self) -> int | None:
        """Return the games of a block, 0 if it is `log`; None if the goal decides."""
        if self.block in ("", "log"):
            return 0 if self.block else None
        try:
            return counted(self.block, high=10**9)
        except ValueError:
            text = self.block[:40]
            raise ValueError(f"a block is a number of games, or log, not {text!r}") from None

    # -- made and stored -------------------------------------------------------------------------

    @classmethod
    def of(cls, rules: Rules, network: Network | str | None = None, **given: Any) -> Self:
        """Return the usual settings, some of them changed; a network may be given by its name."""
        from lab2048.learn.ntuple import Network, named_networks

        if network is None:
            network = next(iter(named_networks(rules)))
        if isinstance(network, str):
            network = Network.of(network, rules)
        return cls(rules, network, **given)

    @classmethod
    def from_facts(cls, facts: Facts) -> Self:
        """Return the settings of a training that was stored."""
        rules = Rules.parse(facts["board"], facts["p4"])
        names = ("method", "rate", "initial", "gamma", "epsilon", "order", "seed")
        return cls.of(rules, " ".join(facts["tuples"]), **{name: facts[name] for name in names})

    @property
    def facts(self) -> Facts:
        """The settings as they are stored with the weights."""
        return {
            "board": self.rules.name,
            "tuples": list(self.network.tuples),
            "method": self.method,
            "rate": self.rate,
            "initial": self.initial,
            "gamma": self.gamma,
            "epsilon": self.epsilon,
            "order": self.order,
            "seed": self.seed,
            "p4": self.rules.p4,
            "rule": self.phases[0].rule,
            "rates": [phase.rate for phase in self.phases],
        }

    def _as_held(self, key: str, value: Any) -> Any:
        if key == "network" and isinstance(value, str):
            from lab2048.learn.ntuple import Network

            return Network.of(value, self.rules)
        return super()._as_held(key, value)

    def default_name(self, kind: str) -> str:
        """Return the board, the network and the method."""
        digest = hashlib.sha256(" ".join(self.network.tuples).encode()).hexdigest()
        short = self.network.name if " " not in self.network.name else digest[:8]
        return f"{self.rules.name}-{short}-{self.method}"

    @classmethod
    def describe(cls, facts: Facts) -> str:
        """Return the method and the tuples."""
        return f"{facts['method']}: {' '.join(facts['tuples'])}"


def usual_initial(rules: Rules) -> float:
    """What boards are worth at first if a method is optimistic: 320,000 on 4x4 (Guei et al.), and
    half of that for every cell less."""
    return float(320_000 * 0.5 ** (16 - rules.cells))
