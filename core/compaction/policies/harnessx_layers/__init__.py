"""The layers of the HarnessX policy, one idea a file. They decide; `harnessx` says it."""
