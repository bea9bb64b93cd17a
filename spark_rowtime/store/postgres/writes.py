"""The writes of nearly every commit."""

PRODUCER_COLUMNS = (
    "name, status, floor, lease, seen, sent, let_go, epoch, accepted, rejected, number, checkpoint, declaration, "
    "disorder, holder, receipt_seq, receipt_floor"
)
PRODUCER_NAMES = PRODUCER_COLUMNS.split(", ")
INSERT_EVENT = f"INSERT INTO rowtime.events VALUES ({', '.join(['%s'] * 15)})"  # noqa: S608  (constants)
INSERT_TRAIN = "INSERT INTO rowtime.trains VALUES (%s, %s, %s, %s)"
UPDATE_PRODUCER = (
    f"UPDATE rowtime.producers SET ({', '.join(PRODUCER_NAMES[1:])}, era) = "  # noqa: S608
    f"({', '.join(['%s'] * len(PRODUCER_NAMES))}) WHERE stream = %s AND name = %s AND era = %s"
)
