"""Commands of the learner with leases and retries of a bucket that take seconds, for tests of killed processes."""

from datetime import timedelta

from kubebeast_common.cli.console import main
from kubebeast_runs.bucket import objects, owned_run, pointer

pointer.LEASE_S = 1.5
pointer._POLL_S = 0.1
owned_run.RENEWAL_S = 0.3
owned_run.UPLOAD_S = 0.5
owned_run.RETRY_S = 0.2
objects.RETRIES["max_retries"] = 2
objects.RETRIES["backoff"] = {
    "init_backoff": timedelta(milliseconds=10),
    "max_backoff": timedelta(milliseconds=100),
}

if __name__ == "__main__":
    main()
