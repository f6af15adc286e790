"""What must hold before a change lands: groups of checks, and which of them this change makes necessary.

groups.toml names each group's command or tests, and the files whose contents it depends on. A group that has passed
with the same inputs on this machine is skipped; stamps of what has passed lie in the folder that CHECKS_CACHE names.
"""
