"""Announcements of complete periods: the calendar, the targets, and what dies in between."""
