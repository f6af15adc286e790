"""RecurrentPPO of Stable-Baselines3's contributions, with its own defaults."""

import json
import sys

from sb3_contrib import RecurrentPPO

from benchmarks.learning.programs.sb3 import train

if __name__ == "__main__":
    train(RecurrentPPO, "MlpLstmPolicy", json.loads(sys.argv[1]))
