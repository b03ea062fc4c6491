"""Kills processes of the service wherever its data could be left half done, and looks what became."""
