"""Monitored sessions, supervisors, and what makes their sessions ready."""
