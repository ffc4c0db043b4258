"""PromQL of the tests' own: a parser, an evaluator over made-up series, and rules with their ``for``.

It reads the part of the language that ``examples/monitoring`` uses and its neighbours, as Prometheus 2 and 3 both read
it, and refuses the rest by name. The meaning is that of Prometheus 3: a range, and the five minutes in which a sample
counts, are open on the left. Facts are from Prometheus's documentation; ``test_evaluate.py`` holds the figures.

    tokens → grammar (syntax) → kinds     an expression, or why a text is none
    notation → store → evaluate           series as promtool writes them, and the value of an expression at an instant
    rule_file → rules, templates          alerts with their state, and their words
"""
