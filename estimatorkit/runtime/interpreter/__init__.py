"""An interpreter of jaxprs in NumPy: runs a segment that has not been compiled."""
