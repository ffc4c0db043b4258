"""Tables of requests and responses by theme. Kafka's own names and numbers; a form "kip" where a KIP's text parts from
what was shipped: spelled like the shipped one, flexible where the shipped one of that number is.
"""
