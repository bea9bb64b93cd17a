"""What is done to whole streams: altering, copying, renaming, deleting and listing them."""
