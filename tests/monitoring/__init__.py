"""What tests of ``examples/monitoring`` share: the table of metrics, the text format, dashboards, a healthy daemon."""
