"""Premade estimators of recommendation."""
