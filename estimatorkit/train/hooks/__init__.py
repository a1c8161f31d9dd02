"""Hooks: what happens around training steps."""
