"""Premade estimators: DNN, Linear and Baseline classifiers and regressors, and the heads they
share.
"""
