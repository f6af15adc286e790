"""Data-parallel learners of one model: ranks under torchrun, and exact sums over them."""
