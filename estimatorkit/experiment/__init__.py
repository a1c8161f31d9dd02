"""Experiments written as YAML, and the `estimatorkit` command.

`schema` says what an experiment is (frozen values), `document` reads YAML and remembers where each
value stands, `load` joins the two and words the errors, `runner` builds the estimator and its input
functions, `report` formats what the command prints, `command` is the command line. Nothing is
imported here, so that `--help` is quick.
"""
