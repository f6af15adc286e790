"""Scripted environments in a module that cannot be imported while the file at the path in GONE exists."""

import os
from pathlib import Path

from tests.system.environments import SCRIPTED

GONE = "SYSTEM_GONE"
ENV_ID = SCRIPTED.replace("environments", "shared_drive")

if Path(os.environ.get(GONE, os.devnull)).is_file():
    raise OSError("the drive is not mounted")
