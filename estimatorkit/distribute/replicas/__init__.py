"""Replicas: one step on many devices."""
