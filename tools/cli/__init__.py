"""What all commands share: arguments, columns, streams, progress, the exit status."""
