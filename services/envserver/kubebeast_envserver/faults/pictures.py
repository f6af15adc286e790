"""Conversion of the results of `render` to frames of one kind."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubebeast_envserver.rows.rows import Array, EnvironmentFailure

_CHANNELS = (1, 3, 4)
"""Channels of a picture: gray, color, color with opacity."""


def to_frame(picture: Any) -> NDArray[np.uint8] | None:
    """Converts a picture that an environment has drawn to uint8 [H, W, 3]; returns None if it has drawn nothing.

    `picture` is [H, W], [H, W, C] or [C, H, W] with 1, 3 or 4 channels, and numbers from 0 to 255, or floats from 0 to
    1; opacity is dropped. Of several pictures, as in render mode rgb_array_list, the newest is converted. Raises
    EnvironmentFailure.
    """
    if isinstance(picture, list | tuple) and not (picture and isinstance(picture[0], list | tuple)):
        picture = picture[-1] if picture else None
    if picture is None:
        return None
    try:
        array = np.asarray(picture)
    except ValueError as error:
        raise _unfit(f"a value that is no array ({error})") from error
    if array.ndim == 4 and len(array):
        array = array[-1]
    return np.ascontiguousarray(_to_colour(_to_bytes(array)))


@np.errstate(all="ignore")  # an environment may have set errors to raise
def _to_bytes(array: Array) -> NDArray[np.uint8]:
    """Returns the same shape with values from 0 to 255."""
    if array.size == 0 or array.dtype.kind not in "biuf":
        raise _unfit(_describe(array))
    if array.dtype == np.uint8:
        return array
    low, high = float(array.min()), float(array.max())
    if not (low >= 0.0 and high <= 255.0):  # the minimum of an array with NaN is NaN
        raise _unfit(f"{_describe(array)} with values from {low:g} to {high:g}, not from 0 to 255 or, of floats, to 1")
    is_share = array.dtype.kind == "b" or (array.dtype.kind == "f" and high <= 1.0)
    return np.rint(array.astype(np.float64) * (255.0 if is_share else 1.0)).astype(np.uint8)


def _to_colour(array: NDArray[np.uint8]) -> NDArray[np.uint8]:
    if array.ndim == 2:
        array = array[..., None]
    elif array.ndim == 3 and array.shape[2] not in _CHANNELS and array.shape[0] in _CHANNELS:
        array = np.moveaxis(array, 0, 2)
    if array.ndim != 3 or array.shape[2] not in _CHANNELS:
        raise _unfit(_describe(array))
    return np.broadcast_to(array[..., :3], (*array.shape[:2], 3))


def _describe(array: Array) -> str:
    return f"{array.dtype} {list(array.shape)}"


def _unfit(what: str) -> EnvironmentFailure:
    return EnvironmentFailure(f"render returned {what}, not a picture [H, W, 3]")
