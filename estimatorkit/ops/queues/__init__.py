"""Queues, accumulators and readers."""
