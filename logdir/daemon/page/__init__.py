"""The status page: the status of a daemon as one HTML page, for people who have a browser and no shell on the host."""
