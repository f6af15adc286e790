"""Settings for every test: no accelerator, one thread an operation, so that results do not depend on the machine."""

import os

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("OMP_NUM_THREADS", "1")
