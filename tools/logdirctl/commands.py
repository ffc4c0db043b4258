"""The commands, each with its line of help, and the text of ``logdirctl --help``.

Imports nothing, so that help is printed before any module of a command is imported.
"""

from __future__ import annotations

COMMANDS = {
    "status": "show the daemon of a broker, its log dirs and the undo window",
    "disk": "release a disk of a running logdird, so that it can be unmounted",
    "inventory": "scan the log dirs of one broker",
    "init": "make the work root of every log dir",
    "reconcile": "show or do what follows on the disks from the cluster's metadata",
    "stage": "move replicas to the work root, to be restored or purged later",
    "capture": "keep, by hard links, what a broker is about to remove or calls stray",
    "staged": "list, restore, adopt, purge, hold or export what is staged",
    "layout": "change between topic-name and topic-id directories",
    "handover": "before a broker starts: end what is unfinished, lift a start block",
    "uninstall": "remove the work roots and lift a start block",
    "describe": "show partitions by topic, id or disk",
    "strays": "list replicas that no metadata claims, and how far that is proven",
    "metadata": "browse or dump the local metadata log",
    "fleet": "scan, plan and report over many brokers",
    "bug-report": "write an archive for those who look into a fault, without records and secrets",
    "explain": "say what a slug of an error or a finding means, and what to do",
}
"""Command and line of help. Each command is a module beside this one; only the typed command's is imported."""
_HELP = """\
usage: logdirctl [-h] [--version] COMMAND ...

Look at, plan for and change the log directories of Apache Kafka brokers with many disks.

positional arguments:
  COMMAND
{commands}

options:
  -h, --help  show this help message and exit
  --version   print the version and leave

exit status: 0 done, 1 problems found, 2 usage or configuration, 3 a broker runs, 4 refused, 5 internal,
             130 interrupted
next: logdirctl inventory --server-properties /etc/kafka/server.properties
"""


def help_text() -> str:
    """Return what ``logdirctl --help`` prints."""
    width = max(map(len, COMMANDS))
    return _HELP.format(commands="\n".join(f"    {name.ljust(width)}  {text}" for name, text in COMMANDS.items()))
