"""Optimizers, their update rules, and learning-rate schedules."""
