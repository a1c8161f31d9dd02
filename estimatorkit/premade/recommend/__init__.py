"""Premade estimators that recommend."""
