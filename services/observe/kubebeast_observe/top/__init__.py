"""`kubebeast top`: a learner and its env-servers on the terminal, with the bottleneck named."""
