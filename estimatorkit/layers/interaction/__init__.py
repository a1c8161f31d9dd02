"""Layers of interactions among fields."""
