"""`kubebeast top`: a learner and its env-servers on the terminal, and which of them holds the others up."""
