"""The numerical heart: from embeddings to a loss and its gradient."""
