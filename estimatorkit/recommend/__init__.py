"""Recommendation: premade estimators, and their layers (`interaction`)."""
