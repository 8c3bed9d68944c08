"""Figures: functions from labelled results to drawings that carry their own data."""
