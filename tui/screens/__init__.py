"""The screens: each mode of the app is one of them."""
