"""What happens only while an embedder is fitted."""
