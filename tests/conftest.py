"""Settings for every test: no accelerator, one thread an operation, so that results do not depend on the machine."""

import os
import signal

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell makes what it runs in the background deaf to SIGINT, and so all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
