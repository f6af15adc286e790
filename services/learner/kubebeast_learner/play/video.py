"""Video files: mp4 by an ffmpeg process (the extra `video`), GIF by Pillow."""

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
"""Minimum side. Smaller frames are enlarged by an integer factor, as players blur enlarged frames."""
LARGEST_SIDE = 3840
"""Maximum side. Players show no larger frames, and encoders have limits."""
SHORTEST_GIF_FRAME_MS = 20
"""Minimum duration of a frame. Browsers slow down files with shorter ones."""


class VideoWriter(Protocol):
    num_frames: int

    def add(self, frame: Frame) -> None:
        """Appends a frame of any size, fitted into the first one's. Raises OSError if it cannot be written."""

    def close(self) -> None:
        """Completes the file."""


@contextlib.contextmanager
def open_video(path: Path, fps: float) -> Iterator[VideoWriter]:
    """Opens a writer for the suffix of `path`, .mp4 or .gif; the file is complete when the context ends.

    An error leaves no file. Raises ConfigError if an mp4 or this file cannot be written.
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
    """Returns the frame with even sides of at least SMALLEST_SIDE, if none exceeds LARGEST_SIDE as a result.

    Larger frames are reduced to LARGEST_SIDE. h264 requires even sides: the last row or column is repeated.
    """
    height, width = frame.shape[:2]
    if max(height, width) > LARGEST_SIDE:
        frame = _scaled(frame, LARGEST_SIDE / max(height, width))
        height, width = frame.shape[:2]
    factor = max(1, min(math.ceil(SMALLEST_SIDE / min(height, width)), LARGEST_SIDE // max(height, width)))
    large = frame.repeat(factor, axis=0).repeat(factor, axis=1)
    return np.pad(large, ((0, height * factor % 2), (0, width * factor % 2), (0, 0)), mode="edge")


class Canvas:
    """Frames of one size, that of the first frame after `enlarged`."""

    def __init__(self) -> None:
        self._size: tuple[int, ...] | None = None
        """(H, W) of the first frame before `enlarged`."""
        self._shape: tuple[int, ...] = ()

    def fitted(self, frame: Frame) -> Frame:
        """Returns the frame after `enlarged`; one of another size is scaled to fit and centered on black."""
        if self._size is None:
            large = enlarged(frame)
            self._size, self._shape = frame.shape[:2], large.shape
            return large
        if frame.shape[:2] == self._size:
            return enlarged(frame)
        height, width = self._shape[:2]
        scaled = _scaled(frame, min(height / frame.shape[0], width / frame.shape[1]))[:height, :width]
        canvas = np.zeros(self._shape, np.uint8)
        top, left = (height - scaled.shape[0]) // 2, (width - scaled.shape[1]) // 2
        canvas[top : top + scaled.shape[0], left : left + scaled.shape[1]] = scaled
        return canvas


def _scaled(frame: Frame, factor: float) -> Frame:
    height, width = (max(1, round(side * factor)) for side in frame.shape[:2])
    return np.asarray(Image.fromarray(np.ascontiguousarray(frame)).resize((width, height)))


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
        self._canvas = Canvas()
        self.num_frames = 0

    def add(self, frame: Frame) -> None:
        large = self._canvas.fitted(frame)
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
    """A writer that holds the video in memory, one byte per pixel."""

    def __init__(self, path: Path, fps: float) -> None:
        self._path = path
        self._frame_ms = max(SHORTEST_GIF_FRAME_MS, 10 * round(100 / fps))
        self._images: list[Image.Image] = []
        self._canvas = Canvas()
        self.num_frames = 0

    def add(self, frame: Frame) -> None:
        self._images.append(Image.fromarray(self._canvas.fitted(frame)).quantize())
        self.num_frames += 1

    def close(self) -> None:
        if self._images:
            first, *others = self._images
            first.save(self._path, save_all=True, append_images=others, duration=self._frame_ms, loop=0)
