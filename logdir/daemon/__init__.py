"""The daemon of one broker: a supervisor of plain threads over the ports of its log dirs.

It has no rule of its own: it decides when a use case of ``logdir.service`` runs, not what that does.

Not here: the timer (``scheduler``), the command line (``tools.logdird``).

Spec: design §5, §6.
"""
