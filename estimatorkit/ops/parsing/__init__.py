"""Parsing of `Example` and `SequenceExample` protos."""
