"""The reading side of a stream: which rows a reader gets next, and with which bound."""
