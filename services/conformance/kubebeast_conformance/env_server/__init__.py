"""The learner's side, for env-servers under test."""
