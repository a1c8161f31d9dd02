"""Evaluations, alone and in the course of a training."""
