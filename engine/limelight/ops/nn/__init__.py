"""Ops of neural networks: activations, convolutions, pools, softmax, standard scores."""
