"""The ops by family: each module registers its ops and defines the functions that build them."""
