"""Interoperability: `GraphDef`s, event files, attribute values, TensorFlow's node types."""
