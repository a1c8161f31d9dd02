"""The compiler and the host: devices, XLA's options and caches, jaxprs, memory, threads."""
