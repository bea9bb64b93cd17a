"""Why a stream's bound stands where it stands: accounts, causes, the chain from the feeds to a stream."""
