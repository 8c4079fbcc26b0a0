"""The settings of temporal-difference learning with n-tuple networks (`td`)."""

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
"""The default learning rate of each rule."""
SMALL = 12
"""A board of fewer cells is small: consecutive positions look up mostly the same weights. Learning
backward then keeps updating values that it has just changed, and overshoots."""
SHORT, SHORT_RATE = 5, 0.5
"""The rate of temporal coherence, backward, if a tuple has fewer cells: on many boards its images
look up the same weight, which changes several times, so that full steps overshoot ever further."""
METHODS = ("td", "tc", "otd", "otc", "td+tc", "otd+tc", "state", "q")
ORDERS = ("backward", "forward")


class Phase(NamedTuple):
    """A phase of a training run, with one learning rule."""

    rule: str
    """td, state or q: what is learnt."""
    coherent: bool
    rate: float


@dataclass(frozen=True)
class NTupleSettings(LearnerSettings):
    """The settings of training an n-tuple network, except how long it lasts."""

    network: Network = setting(  # noqa: RUF009
        MISSING, "A name such as 4x6, or tuples of cells in hexadecimal", kind=str
    )
    method: str = setting("tc", "Learning rule", choices=METHODS)
    rate: float | None = setting(
        None, "Learning rate; 0.1, for tc 1 or 0.5", kind=float, low=1e-6, high=2
    )
    """Of the first phase (`RATES`). At 0 nothing is learnt; above 2 every step adds error."""
    initial: float | None = setting(
        None, "Initial value of all boards (otd, otc)", kind=float, low=-1e9, high=1e9
    )
    """By default 0, or `usual_initial` if the method is optimistic."""
    gamma: float = setting(1.0, "Discount per move", low=0, high=1)
    epsilon: float = setting(0.0, "Probability of a random move (q)", low=0, high=1)
    order: str | None = setting(
        None, "backward, after a game (4x4), or forward", kind=str, metavar="TEXT"
    )
    """By default backward, but forward on small boards and for Q-learning."""
    block: str = setting("", "Games per line of the log", metavar="N|log", stored=False)

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
        """Set fields of this frozen dataclass."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def phases(self) -> list[Phase]:
        """The phases of the training run, in order."""
        assert self.rate is not None
        rates = [self.rate, *self._usual_rates()[1:]]
        return [
            Phase("td" if name == "tc" else name, name == "tc", rate)
            for name, rate in zip(self._parts(), rates, strict=True)
        ]

    def _parts(self) -> list[str]:
        """The names of the phases, without the `o` of an optimistic start."""
        return [name.removeprefix("o") for name in self.method.split("+")]

    def _usual_rates(self) -> list[float]:
        """The default learning rate of each phase."""
        short = self.order == "backward" and min(map(len, self.network.tuples)) < SHORT
        return [SHORT_RATE if short and name == "tc" else RATES[name] for name in self._parts()]

    def block_games(self) -> int | None:
        """Return the number of games per block, 0 for `log`; None if the goal decides."""
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
        """Return the default settings with some changed; the network may be given by name."""
        from lab2048.learn.ntuple import Network, named_networks

        if network is None:
            network = next(iter(named_networks(rules)))
        if isinstance(network, str):
            network = Network.of(network, rules)
        return cls(rules, network, **given)

    @classmethod
    def from_facts(cls, facts: Facts) -> Self:
        """Return the settings of a stored training run."""
        rules = Rules.parse(facts["board"], facts["p4"])
        names = ("method", "rate", "initial", "gamma", "epsilon", "order", "seed")
        return cls.of(rules, " ".join(facts["tuples"]), **{name: facts[name] for name in names})

    @property
    def facts(self) -> Facts:
        """The settings as stored with the weights."""
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
        """Return a name made of the board, the network and the method."""
        digest = hashlib.sha256(" ".join(self.network.tuples).encode()).hexdigest()
        short = self.network.name if " " not in self.network.name else digest[:8]
        return f"{self.rules.name}-{short}-{self.method}"

    @classmethod
    def describe(cls, facts: Facts) -> str:
        """Return the method and the tuples."""
        return f"{facts['method']}: {' '.join(facts['tuples'])}"


def usual_initial(rules: Rules) -> float:
    """The initial value of an optimistic method: 320,000 on 4x4 (Guei et al.), halved for every
    cell less."""
    return float(320_000 * 0.5 ** (16 - rules.cells))
