"""`kubebeast eval --follow`: plays every new checkpoint of a run, beside its training."""
