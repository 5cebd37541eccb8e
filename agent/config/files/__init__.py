"""Files of a configuration as read: TOML with the line of each key, files that include others, scripts."""
