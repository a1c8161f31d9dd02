"""Premade estimators: deep, linear, wide and deep, recurrent and baseline models, k-means, and the
heads that make classifiers and regressors of logits.
"""
