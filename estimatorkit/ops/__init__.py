"""The ops by kind: each module registers its rows and defines the functions that make them."""
