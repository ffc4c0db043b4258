"""``logdirctl``: one module per command, each with ``add_parser`` and the function that runs the command."""
