"""The fleet: many brokers' inventories, conflicts by name, and a migration plan in waves.

It reads disks and inventories and writes plans and reports; it never moves a file of a broker.

Spec: design §7.
"""
