"""What starts real learners, env-servers and fleets, and counts what they do: for tests and for benchmarks alike."""
