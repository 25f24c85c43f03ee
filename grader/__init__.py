"""Grades submissions."""
