"""The version of perfmodel, which is written into whatever it saves."""

VERSION = "0.1.0"
