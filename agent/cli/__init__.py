"""The command line: one file for each verb."""
