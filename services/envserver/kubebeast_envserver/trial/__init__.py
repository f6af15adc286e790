"""`kubebeast-envserver check`: an environment tried with random actions, and all that is wrong with it."""
