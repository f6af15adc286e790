"""`kubebeast eval --follow`: plays every new checkpoint of a run during its training."""
