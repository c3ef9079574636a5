"""Collections of kernels: generators, their tags and sizes, filters, and verification against numpy."""
