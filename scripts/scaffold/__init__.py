"""What scripts/new-pass and scripts/new-op share."""
