"""Tasks of a cluster: runs that several processes take part in."""
