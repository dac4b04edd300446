"""A small project and a scripted user: what `thresher demo` runs."""
