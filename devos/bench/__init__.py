"""Measuring an installation: `devos bench`."""
