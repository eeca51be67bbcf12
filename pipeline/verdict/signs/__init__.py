"""Signs: what one record, or two together, show of a row of the diagnosis table. A sign returns the evidence, nothing without."""
