"""Atari games on atari-py (ALE 0.6), the emulator of gym until 0.19, with the frames of ale-py's vector environment."""

from pathlib import Path
from typing import TYPE_CHECKING

import ale_py
import atari_py
import numpy as np
from numpy.typing import NDArray

from kubebeast_envserver.rows.rows import Array

if TYPE_CHECKING:
    from kubebeast_envserver.envs.atari import AtariSettings

_CRASH = {"pacman", "surround"}
"""Games that are listed as supported, although the emulator crashes."""
_MAX_SEED = 2**31 - 1

Screen = NDArray[np.uint8]


class AtariPyGames:
    """Part of ale_py.vector_env.AtariVectorEnv that AtariEnv uses: single frames, raw rewards, autoreset NEXT_STEP."""

    def __init__(self, game: str, num_envs: int, settings: "AtariSettings") -> None:
        """`game` is the name of a ROM of ale-py. Raises ValueError for a game or size that atari-py cannot play."""
        if game not in _supported():
            raise ValueError(f"atari-py cannot play {game}; it knows {', '.join(sorted(_supported()))}")
        self._games = [_Game(game, settings) for _ in range(num_envs)]
        self.action_set = self._games[0].action_set

    def reset(
        self, *, seed: int | None = None, options: dict[str, Array] | None = None
    ) -> tuple[Screen, dict[str, Array]]:
        """Starts games, game i from seed + i, and returns the frames and the lives as `step` does.

        options["reset_mask"], bool [B], selects the games; by default, all are started.
        """
        mask = np.ones(len(self._games), np.bool_) if options is None else options["reset_mask"]
        for index in np.flatnonzero(mask).tolist():
            self._games[index].reset(None if seed is None else seed + index)
        return self._frames(), self._info()

    def step(self, actions: Array) -> tuple[Screen, Array, Array, Array, dict[str, Array]]:
        """Steps each game with its action, int [B], an index of the action set; starts a game that is over.

        Returns frames uint8 [B, 1, H, W] or [B, 1, H, W, 3], rewards, terminated and truncated [B], and the lives [B].
        """
        for game, action in zip(self._games, actions.tolist(), strict=True):
            if game.is_over:
                game.reset()
            else:
                game.step(action)
        columns = zip(*((game.reward, game.terminated, game.truncated) for game in self._games), strict=True)
        rewards, terminated, truncated = (np.array(column) for column in columns)
        return self._frames(), rewards, terminated, truncated, self._info()

    def _frames(self) -> Screen:
        return np.stack([game.frame for game in self._games])[:, None]

    def _info(self) -> dict[str, Array]:
        return {"lives": np.array([game.lives for game in self._games], np.int32)}


class _Game:
    """One game, preprocessed as in ALE's PreprocessedEnv (src/ale/vector/preprocessed_env.cpp)."""

    def __init__(self, game: str, settings: "AtariSettings") -> None:
        self._rom = str(ale_py.roms.get_rom_path(game))
        self._settings = settings
        self._ale = atari_py.ALEInterface()
        self._ale.setFloat("repeat_action_probability", settings.repeat_action_probability)
        self._seed(None)
        actions = self._ale.getLegalActionSet() if settings.full_action_space else self._ale.getMinimalActionSet()
        self.action_set = [ale_py.Action(action) for action in actions.tolist()]
        width, height = self._ale.getScreenDims()
        self._screens = np.zeros((2, height, width, 1 if settings.grayscale else 3), np.uint8)
        self._shrink = Shrink((height, width), (settings.img_height, settings.img_width))
        self.frame: Screen = self._screens[0]
        """Newest frame, uint8 [H, W] or [H, W, 3]."""
        self.reward = 0
        self.terminated = self.truncated = False

    @property
    def is_over(self) -> bool:
        return self.terminated or self.truncated

    @property
    def lives(self) -> int:
        return int(self._ale.lives())

    def reset(self, seed: int | None = None) -> None:
        settings, ale = self._settings, self._ale
        if seed is not None:
            self._seed(seed)
        ale.reset_game()
        fires = settings.use_fire_reset and ale_py.Action.FIRE in self.action_set
        if fires:
            ale.act(ale_py.Action.FIRE.value)
        for _ in range(int(self._rng.integers(max(settings.noop_max, 1))) - fires):
            ale.act(ale_py.Action.NOOP.value)
            if ale.game_over():
                ale.reset_game()
        self._look(0)
        self._screens[1] = 0
        self._show()
        self._num_frames = self.reward = 0
        self.terminated = self.truncated = False

    def step(self, action: int) -> None:
        settings, ale = self._settings, self._ale
        self.reward = 0
        for remaining in range(settings.frameskip, 0, -1):
            self.reward += ale.act(self.action_set[action].value)
            self._num_frames += 1
            self.terminated = bool(ale.game_over())
            self.truncated = not self.terminated and self._num_frames >= settings.max_num_frames_per_episode
            if self.is_over:
                break
            if remaining <= 2:
                self._look(remaining - 1)
        self._show()

    def _seed(self, seed: int | None) -> None:
        """Starts the emulator again with a seed; None takes one from the operating system."""
        self._rng = np.random.default_rng(seed)
        self._ale.setInt("random_seed", int(self._rng.integers(_MAX_SEED)) if seed is None else seed)
        self._ale.loadROM(self._rom)

    def _look(self, index: int) -> None:
        if self._settings.grayscale:
            self._ale.getScreenGrayscale(self._screens[index])
        else:
            self._ale.getScreenRGB2(self._screens[index])

    def _show(self) -> None:
        newest, older = self._screens
        if self._settings.maxpool:
            np.maximum(newest, older, out=newest)
        frame = self._shrink(newest)
        self.frame = frame[..., 0] if self._settings.grayscale else frame


class Shrink:
    """Reduction of screens like OpenCV's INTER_AREA: a pixel is the mean of the area that it covers."""

    def __init__(self, size: tuple[int, int], to: tuple[int, int]) -> None:
        """`size` and `to` are heights and widths. Raises ValueError if `to` is larger."""
        if to[0] > size[0] or to[1] > size[1]:
            raise ValueError(f"img_height, img_width = {to}: atari-py's screens are {size}, which are not enlarged")
        self._is_needed = size != to
        (self._rows, self._row_weights), (self._columns, self._column_weights) = map(_covered, size, to)

    def __call__(self, screen: Screen) -> Screen:
        """Shrinks uint8 [h, w, C] to uint8 [H, W, C]; always returns a copy."""
        if not self._is_needed:
            return screen.copy()
        rows = np.einsum("yk,ykxc->yxc", self._row_weights, screen[self._rows])
        pixels: Array = np.einsum("xk,yxkc->yxc", self._column_weights, rows[:, self._columns])
        return np.rint(pixels).astype(np.uint8)


def _covered(size: int, to: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Returns the pixels of `size` that each of `to` pixels covers, and their shares of it: both [to, K]."""
    begin = np.arange(to)[:, None] * (size / to)
    pixels = np.arange(size)
    overlap = np.minimum(begin + size / to, pixels + 1) - np.maximum(begin, pixels)
    weights = np.maximum(overlap, 0.0) * (to / size)
    num_covered = int((weights > 0.0).sum(axis=1).max())
    first = np.minimum((weights > 0.0).argmax(axis=1), size - num_covered)
    covered = first[:, None] + np.arange(num_covered)
    return covered, np.take_along_axis(weights, covered, axis=1).astype(np.float32)


def _supported() -> set[str]:
    """Returns the names of ROMs in atari-py's own list."""
    lines = (Path(atari_py.__file__).parent / "ale_interface" / "md5.txt").read_text(encoding="utf-8").splitlines()
    return {Path(line.split()[1]).stem for line in lines if line.endswith(".bin")} - _CRASH
