"""Math ops: element-wise functions, reductions, products, random draws."""
