"""Variables: state ops, initializers, scopes, partitioned variables."""
