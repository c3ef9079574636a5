"""Runs published studies, each as one command: what a recipe is, and what running one gave."""
