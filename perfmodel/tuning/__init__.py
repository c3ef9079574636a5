"""Which configurations are worth measuring, and adapters of tuners."""
