"""What a browser or a scraper reads over TCP: the status page and the metrics. Nothing here changes anything."""
