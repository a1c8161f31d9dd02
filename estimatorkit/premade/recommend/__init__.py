"""Premade models of clicks."""
