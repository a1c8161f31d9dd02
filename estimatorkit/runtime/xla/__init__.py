"""The compiler and the host: XLA's options, caches, rewriting of jaxprs, memory, threads."""
