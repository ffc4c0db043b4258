"""Drop-ins for the systemd units of logdird and of its broker: what a static unit cannot know of a host."""
