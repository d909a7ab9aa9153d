"""The backward pass of a call, run op by op: is it right, how large are its gradients, what would recomputing cost?"""
