"""NumPy arrays of the columns of a log, for pictures."""

import numpy as np
from numpy.typing import NDArray

from kubebeast_runs.log_table import LogTable
from kubebeast_runs.log_table import Values as Column

Values = NDArray[np.float64]


def as_array(values: Column) -> Values:
    """Returns the values as an array, [N], without a copy."""
    return np.asarray(values, dtype=np.float64)


def column(log: LogTable, name: str) -> Values | None:
    """Returns a column as an array, [N], or None if it has no finite number."""
    values = log.column(name)
    return None if values is None else as_array(values)
