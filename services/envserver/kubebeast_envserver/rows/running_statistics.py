"""Statistics that wrappers keep of observations or rewards, such as obs_rms of gymnasium's NormalizeObservation.

They affect the observations and rewards of an agent, so they are needed to evaluate it or to train it further.
Statistics are attributes with a mean, a variance (var) and a count, like gymnasium.wrappers.utils.RunningMeanStd.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from gymnasium.vector import VectorWrapper
from numpy.typing import NDArray

from kubebeast_envserver.rows.advice import advise
from kubebeast_envserver.rows.rows import HostedEnv, WrappedEnv


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics in one attribute of one wrapper."""

    wrapper: str
    """Name of the wrapper's class."""
    name: str
    """Name of the attribute, e.g. obs_rms."""
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    count: float

    @property
    def is_finite(self) -> bool:
        """True if the numbers, and the squares of the means, are finite: otherwise merging them gives none that are."""
        with np.errstate(all="ignore"):
            return bool(all(np.isfinite(each).all() for each in (self.mean**2, self.variance, self.count)))

    def to_plain(self) -> dict[str, Any]:
        """Returns the form in JSON and checkpoints."""
        plain = {"wrapper": self.wrapper, "name": self.name, "count": self.count}
        return {**plain, "mean": self.mean.tolist(), "variance": self.variance.tolist()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Statistics":
        """Inverts `to_plain`. Raises ValueError for invalid statistics."""
        try:
            mean, variance = (np.asarray(plain[name], np.float64) for name in ("mean", "variance"))
            count = float(plain["count"])
            result = cls(str(plain["wrapper"]), str(plain["name"]), mean, variance, count)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"no statistics of a wrapper: {error!r}") from error
        if problem := not_finite_in((result,)):
            raise ValueError(problem)
        return result


@runtime_checkable
class StatisticsKeeper(Protocol):
    """A HostedEnv with wrappers that may keep statistics."""

    def statistics(self) -> tuple[Statistics, ...]:
        """Returns the statistics of all environments, merged, the outermost wrapper's first; empty if no wrapper keeps
        any.
        """

    def restore(self, statistics: Sequence[Statistics], *, frozen: bool) -> None:
        """Gives the statistics to the wrappers, with a share of the count for each of B environments.

        If `frozen` is set, the wrappers do not update them any more.
        """


def statistics_of(env: HostedEnv) -> tuple[Statistics, ...]:
    keeper = _keeper(env)
    return () if keeper is None else keeper.statistics()


def restore(env: HostedEnv, statistics: Sequence[Statistics] | None, *, evaluation: bool) -> None:
    """Gives the wrappers of `env` the statistics of a training, which an evaluation does not update.

    `statistics` is None if they are neither known nor saved; users are advised of the consequences.
    """
    keeper = _keeper(env)
    if keeper is None or not (found := keeper.statistics()):
        return
    if statistics:
        keeper.restore(statistics, frozen=evaluation)
    if statistics is None:
        names = ", ".join(dict.fromkeys(each.wrapper for each in found))
        text = "begin anew, so that the agent sees other numbers than in training" if evaluation else "are not saved"
        advise(
            f"{names}: statistics of each environment by itself, which {text}. kubebeast mono saves them with the run, "
            "env-servers do not; --normalise-observations and --normalise-values keep such in the model instead"
        )


def read(env: object) -> tuple[Statistics, ...]:
    """Returns the statistics of the wrappers around one environment or vector, the outermost first."""
    return tuple(
        Statistics(
            type(layer).__name__,
            name,
            np.array(moments.mean, np.float64),
            np.array(moments.var, np.float64),
            float(moments.count),
        )
        for layer, name, moments in _moments(env)
    )


def not_finite_in(statistics: Sequence[Statistics]) -> str:
    """Returns a message about the first ones that are not finite; "" if all are."""
    bad = next((each for each in statistics if not each.is_finite), None)
    return "" if bad is None else f"the statistics {bad.name} of {bad.wrapper} are not finite"


def write(env: object, statistics: Sequence[Statistics], *, frozen: bool) -> None:
    """Inverts `read`, for wrappers of the same names and shapes; advises of others."""
    given: dict[tuple[str, str], list[Statistics]] = {}
    for each in statistics:
        given.setdefault((each.wrapper, each.name), []).append(each)
    for layer, name, moments in _moments(env):
        same = given.get((type(layer).__name__, name), [])
        if not same or same[0].mean.shape != np.shape(moments.mean):
            advise(f"{type(layer).__name__}: its statistics {name} are not those of the run: they begin anew")
            continue
        saved = same.pop(0)
        with np.errstate(all="ignore"):  # an environment may have set errors to raise
            moments.mean = saved.mean.astype(np.asarray(moments.mean).dtype)
            moments.var = saved.variance.astype(np.asarray(moments.var).dtype)
        moments.count = saved.count
        if frozen and hasattr(layer, "update_running_mean"):
            layer.update_running_mean = False


def merged(parts: Iterable[Sequence[Statistics]]) -> tuple[Statistics, ...]:
    """Merges statistics of several environments (Chan et al. 1983, https://doi.org/10.1080/00031305.1983.10483115)."""
    result: tuple[Statistics, ...] = ()
    for part in parts:
        result = tuple(map(_merged, result, part)) if result and part else result or tuple(part)
    return result


def shares(statistics: Sequence[Statistics], share: float) -> tuple[Statistics, ...]:
    """Returns the same moments with a share of the count."""
    return tuple(replace(each, count=each.count * share) for each in statistics)


def _merged(one: Statistics, other: Statistics) -> Statistics:
    count = one.count + other.count
    share = other.count / count if count > 0 else 0.0
    with np.errstate(all="ignore"):  # an environment may have set errors to raise
        difference = other.mean - one.mean
        mean = one.mean + share * difference
        variance = (1 - share) * one.variance + share * other.variance + share * (1 - share) * difference**2
    return replace(one, mean=mean, variance=variance, count=count)


def _moments(env: object) -> Iterator[tuple[Any, str, Any]]:
    """Yields the wrapper, the attribute's name and its value for all statistics."""
    while isinstance(env, gymnasium.Wrapper | VectorWrapper):
        for name, value in list(vars(env).items()):
            if name != "env" and _has_moments(value):
                yield env, name, value
        env = env.env


def _has_moments(value: object) -> bool:
    with contextlib.suppress(Exception):  # attributes that compute may raise
        numbers = [np.asarray(getattr(value, name)) for name in ("mean", "var", "count")]
        return all(array.dtype.kind in "fiu" for array in numbers)
    return False


def _keeper(env: HostedEnv) -> StatisticsKeeper | None:
    while isinstance(env, WrappedEnv):
        env = env.wrapped
    return env if isinstance(env, StatisticsKeeper) else None
