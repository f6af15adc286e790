"""A fleet of streams under an Assigner, in simulated time: each follows its assignment at the end of an episode."""

import random
from collections.abc import Mapping

from kubebeast_broker.assignment.assigner import Assigner
from kubebeast_broker.assignment.shares import Claim

TICK_S = 0.25


class SimulatedFleet:
    """Streams "0", "1", ... with episodes of up to `episode_s` seconds."""

    def __init__(self, weights: Mapping[str, float], num_streams: int, episode_s: float = 1.0, seed: int = 1) -> None:
        self.now_s = 0.0
        self.assigner = Assigner(0.0)
        self.stream_seconds: dict[str, float] = {}
        self.moves_s: dict[str, list[float]] = {}
        """Times at which each stream began to play with another learner."""
        self._random = random.Random(seed)
        self._episode_s = episode_s
        self._ends_s: dict[str, float] = {}
        for name, weight in weights.items():
            self.assigner.add_learner(name, f"run of {name}", Claim(weight, 0))
        self.scale(num_streams)

    def scale(self, num_streams: int) -> None:
        """Adds streams, or removes the last ones."""
        streams = self.assigner.streams
        for number in range(len(streams), num_streams):
            self.assigner.add_stream(f"{number}")
        for number in range(num_streams, len(streams)):
            self.assigner.remove_stream(f"{number}")

    def play(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s += TICK_S
            for name, seconds in self.assigner.advance(self.now_s).items():
                self.stream_seconds[name] = self.stream_seconds.get(name, 0.0) + seconds
            self.assigner.assign()
            for key, stream in list(self.assigner.streams.items()):
                is_free = stream.playing not in self.assigner.learners
                if not is_free and self.now_s < self._ends_s.get(key, 0.0):
                    continue
                self._ends_s[key] = self.now_s + self._random.uniform(0.0, self._episode_s)
                if stream.playing != stream.learner:
                    self.moves_s.setdefault(key, []).append(self.now_s)
                    self.assigner.update_stream(key, stream.learner, stream.refused_by)

    def counts(self) -> dict[str, int]:
        """Returns the number of streams that are assigned to each learner."""
        return {name: len(learner.streams) for name, learner in self.assigner.learners.items()}

    def errors(self, before: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, float]:
        """Returns the relative errors of the stream-seconds since `before`, by learner."""
        spent = {name: self.stream_seconds[name] - before.get(name, 0.0) for name in weights}
        total, sum_of_weights = sum(spent.values()), sum(weights.values())
        return {name: spent[name] / total / (weight / sum_of_weights) - 1.0 for name, weight in weights.items()}
