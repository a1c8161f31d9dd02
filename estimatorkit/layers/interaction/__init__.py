"""Layers of recommendation models."""
