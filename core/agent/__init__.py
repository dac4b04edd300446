"""Our own agent: the sampling loop, the tools it offers the model, and who may approve them."""
