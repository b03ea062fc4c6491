"""A validation by a command of the user's: the task goes to its stdin, the result comes on its stdout."""
