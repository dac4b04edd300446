"""What the two OpenCode engines share: token estimate, messages, text form, prompt, output bounds.

Source of all files here: OpenCode 1.18.33 (npm `opencode-ai`), read in the shipped program and
checked against recorded sessions of it. V1 serves its terminal and `opencode run`, V2 its
`/api/session`.
"""
