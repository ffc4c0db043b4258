"""Tables of requests and responses by theme, with Kafka's names and numbers. Form "kip" is used if the text of a KIP
differs from the shipped message; it has the shipped spelling, and is flexible if the shipped version of that number is.
"""
