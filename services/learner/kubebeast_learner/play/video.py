"""Frames to a video file: mp4 by an ffmpeg process (the extra `video`), GIF by Pillow."""

import contextlib
import math
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from kubebeast_learner.config import ConfigError

Frame = NDArray[np.uint8]
"""[H, W, 3]"""

SMALLEST_SIDE = 160
"""Smaller frames are enlarged by a whole factor: players blur what they enlarge."""
SHORTEST_GIF_FRAME_MS = 20
"""Browsers slow down what asks for less."""


class VideoWriter(Protocol):
    num_frames: int

    def add(self, frame: Frame) -> None:
        """Appends a frame, of the first one's size. OSError when it cannot be written."""

    def close(self) -> None:
        """Completes the file."""


@contextlib.contextmanager
def open_video(path: Path, fps: float) -> Iterator[VideoWriter]:
    """A writer by the ending of `path`, .mp4 or .gif; the file is complete when the context ends.

    An error leaves no file. ConfigError where an mp4 or this file cannot be written.
    """
    writer = _Mp4Writer(path, fps) if path.suffix == ".mp4" else _GifWriter(path, fps)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with contextlib.closing(writer):
                yield writer
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"out = {str(path)!r}: {error}") from error


def enlarged(frame: Frame) -> Frame:
    """At least SMALLEST_SIDE, with even sides, which h264 demands: the last row or column is repeated."""
    height, width = frame.shape[:2]
    factor = math.ceil(SMALLEST_SIDE / min(height, width))
    large = frame.repeat(factor, axis=0).repeat(factor, axis=1)
    return np.pad(large, ((0, height * factor % 2), (0, width * factor % 2), (0, 0)), mode="edge")


class _Mp4Writer:
    def __init__(self, path: Path, fps: float) -> None:
        try:
            import imageio_ffmpeg
        except ImportError as error:
            raise ConfigError(
                f"out = {str(path)!r}: mp4 needs pip install imageio-ffmpeg; .gif goes without"
            ) from error
        self._open = imageio_ffmpeg.write_frames
        self._path = path
        self._fps = fps
        self._ffmpeg: Generator[None, Frame | None, None] | None = None
        self.num_frames = 0

    def add(self, frame: Frame) -> None:
        large = enlarged(frame)
        if self._ffmpeg is None:
            height, width = large.shape[:2]
            self._ffmpeg = self._open(str(self._path), (width, height), fps=self._fps, macro_block_size=2)
            self._ffmpeg.send(None)
        self._ffmpeg.send(np.ascontiguousarray(large))
        self.num_frames += 1

    def close(self) -> None:
        if self._ffmpeg is not None:
            self._ffmpeg.close()


class _GifWriter:
    """Holds the film in memory, a byte a pixel."""

    def __init__(self, path: Path, fps: float) -> None:
        self._path = path
        self._frame_ms = max(SHORTEST_GIF_FRAME_MS, 10 * round(100 / fps))
        self._images: list[Image.Image] = []
        self.num_frames = 0

    def add(self, frame: Frame) -> None:
        self._images.append(Image.fromarray(enlarged(frame)).quantize())
        self.num_frames += 1

    def close(self) -> None:
        if self._images:
            first, *others = self._images
            first.save(self._path, save_all=True, append_images=others, duration=self._frame_ms, loop=0)
