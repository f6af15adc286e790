"""Groups of checks that must pass before a change lands, and the selection of those that a change requires.

groups.toml names each group's command or tests, and the files on which it depends. A group that has passed with the
same inputs on this machine is skipped; the stamps of passed groups are in the folder that CHECKS_CACHE names.
"""
