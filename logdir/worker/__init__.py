"""A port per log dir: its calls in this process, or in a worker process that must answer before a deadline."""
