"""The vocabulary: one file a family of features."""
