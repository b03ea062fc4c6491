"""The files in deploy/: read, checked and, where the programs are here, started."""
