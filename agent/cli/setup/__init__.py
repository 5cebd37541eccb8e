"""Verbs that set up a machine: init, check, doctor, deploy, notify, webhook."""
