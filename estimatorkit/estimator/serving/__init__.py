"""Export of models, and execution of exported models."""
