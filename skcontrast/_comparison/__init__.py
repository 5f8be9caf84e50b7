"""Whether two fits are of the same parameters and data: what is compared, and how."""
