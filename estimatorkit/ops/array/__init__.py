"""Array ops: shapes, joining, indexing, sorting, segments."""
