"""An experiment on Kubernetes: an image, and manifests for the operators that know training jobs.

`job` says what is to run as a value that is right once it is made, `image` writes the Dockerfile,
`manifests` turns a job into what Kubernetes is given, `files` puts all of it into a folder. Nothing
here talks to a cluster.
"""
