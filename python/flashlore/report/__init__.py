"""Pages that open without a network: `page` is their shell."""
