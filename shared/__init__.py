"""What two programs of Sluice must agree on: messages, records, keys, tokens, clocks, metrics. Imports no sibling."""
