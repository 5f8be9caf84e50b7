"""The objective: from embeddings to a loss and its gradient."""
