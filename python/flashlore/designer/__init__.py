"""What a designer of a device wants to know: who wins on which part, and how to divide the DRAM.

`python -m flashlore.designer` runs the evaluation of `papers/designer` and makes its page.
"""
