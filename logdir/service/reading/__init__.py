"""Use cases that only read, as the control socket runs them: what is asked, and the process that answers."""
