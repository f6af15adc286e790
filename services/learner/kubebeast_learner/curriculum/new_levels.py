"""Levels without a result, drawn one after the other."""

from collections import OrderedDict
from collections.abc import Iterable


class NewLevels:
    """The levels without a result. One that is drawn is not ready for the next N draws, in which its result may come.

    After these its episode counts as lost, with its env-server or its environment. All methods take constant time, on
    average.
    """

    def __init__(self, levels: Iterable[int], num_levels: int) -> None:
        """levels: indices of those without a result, all of them ready. num_levels: N, with those that have one."""
        self._ready = list(levels)
        self._num_levels = num_levels
        self._places = {level: place for place, level in enumerate(self._ready)}
        """Places in the list of those that are ready."""
        self._drawn: OrderedDict[int, int] = OrderedDict()  # unlike a dict, it finds the oldest at once
        """Numbers of the draws of the others, the oldest first."""

    def __len__(self) -> int:
        """Returns the number of levels without a result, ready or not."""
        return len(self._ready) + len(self._drawn)

    def num_ready(self, draw: int) -> int:
        """Returns the number of levels that the draw with that number, counted from 1 and rising, may take."""
        while self._drawn:
            level, drawn_at = next(iter(self._drawn.items()))
            if draw - drawn_at < self._num_levels:
                break
            del self._drawn[level]
            self._places[level] = len(self._ready)
            self._ready.append(level)
        return len(self._ready)

    def take(self, share: float, draw: int) -> int:
        """Returns the level at `share`, from 0 to below 1, of those that are ready, of which there must be one."""
        level = self._ready[min(int(share * len(self._ready)), len(self._ready) - 1)]
        self._remove(level)
        self._drawn[level] = draw
        return level

    def note_result(self, level: int) -> None:
        """Removes a level for good; one that has a result already is ignored."""
        if level in self._places:
            self._remove(level)
        self._drawn.pop(level, None)

    def _remove(self, level: int) -> None:
        """Removes a level from those that are ready: the last of them takes its place."""
        place, last = self._places.pop(level), self._ready.pop()
        if last != level:
            self._ready[place], self._places[last] = last, place
