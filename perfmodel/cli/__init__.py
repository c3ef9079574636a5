"""The command line: thin; each command is a few calls of the library."""
