"""Datasets of files and tables: CSV, records, text, Parquet."""
