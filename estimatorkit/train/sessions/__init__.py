"""Sessions for training: monitored sessions, supervisors, and their preparation."""
