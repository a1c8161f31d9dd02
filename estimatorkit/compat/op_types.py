"""Every module of `compat` that registers op types, imported."""
