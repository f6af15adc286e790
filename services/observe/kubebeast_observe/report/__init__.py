"""`kubebeast report`: one page about one run, made from its folder only."""
