"""Why a stream's bound stands where it stands: statuses, causes, the chain from the feeds to a stream."""
