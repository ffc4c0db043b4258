"""Field tables of requests and responses by theme, with Kafka's names and numbers. Form "kip" is used if the text of a
KIP differs from the shipped message; it spells field names as the shipped message does, and is flexible if the shipped
message of the same version is.
"""
