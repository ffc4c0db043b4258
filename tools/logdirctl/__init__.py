"""``logdirctl``: one module per command or group of commands, each with its ``COMMAND``; ``commands`` lists them."""
