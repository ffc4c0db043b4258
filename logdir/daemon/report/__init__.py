"""What the daemon reports: its status, its log and history, failed disks, messages to systemd."""
