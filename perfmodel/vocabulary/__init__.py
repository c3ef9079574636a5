"""Features: the grammar of their names, what a feature is, and how a name becomes one."""
