"""Everything that is only used while an embedder is fitted."""
