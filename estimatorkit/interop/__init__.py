"""TensorFlow's formats: `GraphDef`, event files, attribute values."""
