"""Experiments on Kubernetes: an image, and manifests for training operators.

`job` is the validated description, `image` writes the Dockerfile, `manifests` converts a job for
Kubernetes, `files` writes everything to a folder. Nothing here contacts a cluster.
"""
