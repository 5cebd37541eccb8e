"""Calendars: crontab expressions, zones and windows. Only here is a time of day turned into an instant."""
