"""The screens and the command line of thresher."""
