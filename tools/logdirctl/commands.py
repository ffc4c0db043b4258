"""Every command with the line that says what it does, and the help of ``logdirctl`` made of them.

Imports nothing: help stands before anything is imported for a command.
"""

from __future__ import annotations

COMMANDS = {
    "inventory": "scan the log dirs of one broker",
    "init": "make the work root of every log dir",
    "reconcile": "what follows on the disks from what the cluster says",
    "stage": "set replicas aside, to be restored or purged later",
    "capture": "keep what a broker is about to remove, or calls stray",
    "staged": "list, restore, adopt, purge, hold or export what is staged",
    "layout": "change between topic-name and topic-id directories",
    "uninstall": "take everything of ours back",
    "describe": "show partitions by topic, id or disk",
    "strays": "list what no metadata claims, and how far that is proven",
    "metadata": "browse or dump the local metadata log",
    "fleet": "scan, plan and report over many brokers",
    "explain": "say what a slug of an error or a finding means, and what to do",
}
"""Each a module beside this one; only the one that is asked for is read."""
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
