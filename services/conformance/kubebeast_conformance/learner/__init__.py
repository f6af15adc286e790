"""A fleet's side, for learners under test."""
