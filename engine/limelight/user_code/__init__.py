"""Where in the user's code are we, and what does it say? The only readers of the user's source, frames and names."""
