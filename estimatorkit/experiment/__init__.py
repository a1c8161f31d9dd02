"""Experiments written as YAML, and the `estimatorkit` command.

`schema` defines experiments (frozen values), `document` reads YAML with source locations, `load`
combines the two and formats errors, `runner` builds the estimator and its input functions, `report`
formats the command's output, `command` is the command line. Nothing is imported here, so that
`--help` is fast.
"""
