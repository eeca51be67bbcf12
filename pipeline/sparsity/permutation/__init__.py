"""Channel permutation: reorder the channels of a dense model, its function unchanged, so that 2:4 masks cost less.

`channels` holds what is known of every channel's identity, `follow` reads it from the model's graph op by op, `spaces`
solves it into sets of channels that may trade places, `search` finds good orders, `rewrite` moves the weights.
"""
