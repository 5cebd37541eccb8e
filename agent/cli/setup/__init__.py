"""Verbs that set a box up: init, check, doctor, deploy, notify, webhook."""
