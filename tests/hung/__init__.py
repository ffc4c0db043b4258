"""Log dirs that stop answering: what every command does beside one."""
