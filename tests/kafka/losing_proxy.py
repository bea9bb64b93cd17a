"""A proxy before a broker that loses requests of one kind, or their answers."""

from tests.crash.cutting_proxy import CuttingProxy

END_TRANSACTION = 26
"""The number of the request by which a producer commits, or aborts, in Kafka's protocol."""


class LosingProxy(CuttingProxy):
    """Closes the connection at each of the next ``losses`` requests to end a transaction.

    With ``delivered`` the broker has got the request, and only its answer is lost.
    """

    def __init__(self, server: int) -> None:
        super().__init__(server)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.losses, self.lost = 0, 0

    def lose(self, losses: int, *, delivered: bool) -> None:
        """Begins to count again."""
        self.losses, self.lost, self.delivered = losses, 0, delivered

    def _cuts(self, chunk: bytes) -> bool:
        if int.from_bytes(chunk[4:6]) != END_TRANSACTION or self.lost >= self.losses:
            return False
        self.lost += 1
        return True
