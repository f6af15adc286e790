"""The `kubebeast` command: finds the commands of installed packages, reads their settings and runs them."""
