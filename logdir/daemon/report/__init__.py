"""What the daemon tells: its status, its log and history, failed disks, messages to systemd."""
