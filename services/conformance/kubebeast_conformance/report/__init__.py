"""Results for people, for programs and for CI."""
