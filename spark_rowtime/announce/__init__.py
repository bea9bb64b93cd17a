"""Announcements: tells a scheduler, once for each hour or day, that the stream's bound has passed it."""
