"""Runs in the bucket of an object store: S3, Google Cloud Storage, Azure Blob Storage.

<url>/latest                     name of the run that began last
<url>/<xpid>/run.json            files of the run, and its lease: see manifest.py
<url>/<xpid>/eval.json           the same of the process that plays its checkpoints, eval-<name>.json of one with a name
<url>/<xpid>/<file>/<fence>-<n>  pieces of a file; none is ever replaced by another one
"""
