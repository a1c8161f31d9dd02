"""Starting the processes of a cluster, on this machine and by Ray."""
