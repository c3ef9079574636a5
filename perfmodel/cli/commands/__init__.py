"""The commands of the command line, a module for each family of them; `perfmodel.cli` puts them together.

Each module's ``add`` is given `command`, which adds one by what runs it, its name, its summary and an example, and
returns the command's parser. What runs a command takes what was parsed, and returns the exit status, or None for 0.
Modules import little at the top, so that help and completion are quick.
"""
