"""`kubebeast report`: one page about one run, made from nothing but its folder."""
