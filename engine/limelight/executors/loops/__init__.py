"""The executor `loops`: stretches of a graph as tables of NumPy's inner loops."""
