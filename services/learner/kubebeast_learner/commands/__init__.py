"""The processes behind `kubebeast train`, `learner` and `mono`."""
