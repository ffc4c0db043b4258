"""The work root of a log dir: found, made, opened, removed."""
