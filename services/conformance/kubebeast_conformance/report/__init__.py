"""Reports of results: as text, JSON and JUnit XML."""
