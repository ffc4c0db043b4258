"""The work root of a log dir: finding, creating, opening and removing it."""
