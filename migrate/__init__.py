"""The fleet planner: inventories of many brokers in; conflicts and a migration plan in waves out.

It reads disks and inventories and writes plans and reports; it never moves a file of a broker.

Spec: design §7.
"""
