"""The tools of our agent. `base` holds the contract, `registry` the set and how a call runs."""
