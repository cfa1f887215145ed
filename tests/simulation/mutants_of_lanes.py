"""Mutants of what a lane does: transactions, flushes, and the order of batches."""

from __future__ import annotations

from tests.simulation.mutating import mutant_of as _of

LANE, APPENDER, CURSOR, FEED = "copying.lane", "copying.appender", "copying.cursor", "copying.source_feed"
RECORDS = "copying.commit_records"
FENCING, DRIVER, END, COORDINATION = "copying.fencing", "copying.driver", "copying.segment_end", "clusters.groups.coordination"

OF_LANES = (
    # In the transaction.
    _of(
        "no-receipts", "receipts are in the transaction", END, ("records = {**found.receipts, **found.heads}", "records = {**found.heads}")
    ),
    _of("no-heads", "heads are in the transaction", END, ("records = {**found.receipts, **found.heads}", "records = {**found.receipts}")),
    _of(
        "no-positions",
        "positions are in the transaction",
        END,
        (", self._loop.start(commit)])", "])"),
    ),
    _of(
        "receipts-outside",
        "receipts are written by the transaction's producer",
        LANE,
        (
            "TransactionEnd(self._loop, self._coordinator, new_ledger(), None",
            "TransactionEnd(self._loop, self._coordinator, InternalWriter(*own, None, transactions_v2=transactions_v2), None",
        ),
    ),
    _of(
        "no-group-in-transaction",
        "the group is added to the transaction (transaction.version 1)",
        LANE,
        ("group = [] if self._registered else [self._loop.start(self._coordinator.add_offsets, self._identity)]", "group = []"),
    ),
    _of(
        "commit-early",
        "the commit waits for every answer",
        LANE,
        ("self._records.unanswered or self._unclear_sent_again() or self._commit_records.is_writing", "False"),
    ),
    _of(
        "settle-early",
        "a partition is settled when nothing of it is in flight",
        LANE,
        ("        return [cursor for cursor in cursors if not self._records.busy(cursor.task.remote)]", "        return list(cursors)"),
    ),
    _of(
        "confirm-early",
        "a cursor is committed when the commit is answered",
        LANE,
        (
            "        self._adopt(await ending)\n",
            "        self._commit_records.confirm(touched)\n        self._adopt(await ending)\n",
        ),
        (
            "TransactionEvent.DONE)\n        self._commit_records.confirm(touched)\n",
            "TransactionEvent.DONE)\n",
        ),
    ),
    _of(
        "ends-without-commit",
        "a lane commits positions that moved without records before it ends",
        LANE,
        (" and not self._groups.unfinished and not self._groups.touched", " and not self._groups.unfinished"),
        ("(sent or self._groups.touched)", "sent"),
    ),
    _of(
        "receipts-again",
        "a committed receipt is not written again",
        CURSOR,
        ("if self._receipts and self.task.follows else None\n        self._receipts = []\n", "if False else None\n"),
    ),
    _of(
        "receipt-of-epochs",
        "a receipt is about one leader epoch",
        CURSOR,
        ("self._draft.source_epoch not in {-1, batch.last_leader_epoch}", "False"),
    ),
    _of(
        "old-head",
        "the head has the position of the receipts",
        CURSOR,
        ("            position=self.position,", "            position=self.task.position,"),
    ),
    _of(
        "not-added",
        "every transaction adds its partitions (transaction.version 1)",
        LANE,
        ("        self._registered.clear()\n", ""),
    ),
    _of(
        "uncommitted-state",
        "only committed heads, receipts and positions of Ferry's topics count",
        "clusters.logs.internal_reader",
        ("READ_COMMITTED if self._committed else READ_UNCOMMITTED", "READ_UNCOMMITTED"),
    ),
    # Receipts before the answers.
    _of(
        "wrong-prediction-stays",
        "a receipt whose prediction was wrong is corrected",
        "copying.prediction",
        ("                cursors[key].take_again(found)\n                wrong[key] = cursors[key]\n", "                pass\n"),
    ),
    _of(
        "correction-unwritten",
        "a corrected receipt is written in the same transaction",
        RECORDS,
        ("        if corrected:\n", "        if False:\n"),
    ),
    _of(
        "commit-before-receipts",
        "the commit waits until receipts, heads and positions are answered",
        LANE,
        (" or self._commit_records.is_writing", ""),
        beside=_of("", "", RECORDS, ("        await early.written\n", "")),
    ),
    _of(
        "named-and-not-accepted",
        "what a receipt names is accepted before the commit (without the rule about batches that the log may hold)",
        LANE,
        ("unclear = self._records.unclear if self._job.flow.exactly_once else []", "unclear = list[TopicPartition]()"),
        ("        unclear += filter(self._records.busy, self._commit_records.prediction.predicted)\n", ""),
        beside=_of(
            "",
            "",
            "copying.prediction",
            ("if sum(batch.count for batch, _ in found) != sum(batch.count for batch, _ in predicted):", "if False:"),
        ),
    ),
    _of(
        "news-before-the-commit",
        "what arrives while receipts are written waits for the commit",
        LANE,
        ("            if self._commit_records.early is None:\n", "            if True:\n"),
    ),
    _of(
        "other-key",
        "a corrected receipt replaces the one that was written early",
        CURSOR,
        (
            "            self._receipts[0] = grown(self._growing, self._receipts[0])\n",
            "            self._receipts[0], self._growing = grown(self._growing, self._receipts[0]), None\n",
        ),
        beside=_of("", "", RECORDS, ("if not {key for key, _ in records} <= {key for key, _ in corrected.get(place, ())}:", "if False:")),
    ),
    # Without transactions.
    _of(
        "heads-before-receipts",
        "without transactions, a head comes after its receipts",
        END,
        ("        await self._ledger.append(found.receipts)\n", "        await self._ledger.append(found.heads)\n"),
        ("await self._append(identity, found.heads)", "await self._append(identity, found.receipts)"),
    ),
    _of(
        "positions-before-heads",
        "without transactions, a position comes after its head",
        END,
        ("        identity = await self._append(identity, found.heads)\n        try:\n", "        try:\n"),
        (
            "        return identity\n\n    async def _append",
            "        return await self._append(identity, found.heads)\n\n    async def _append",
        ),
    ),
    # The order of batches.
    _of(
        "unclear-forgotten",
        "a batch that the log may hold is sent again before the commit",
        APPENDER,
        ("[id(item.batch)] if answer.unclear else ()", "()"),
    ),
    _of(
        "not-alone",
        "the first batch of a partition is sent alone",
        APPENDER,
        ("        return queue.proven or not queue.in_flight\n", "        return True\n"),
        ("(not queue.proven and queue.in_flight) or ", ""),
    ),
    _of(
        "accepted-after-refused",
        "a batch that is accepted after one that was not ends the transaction",
        APPENDER,
        ("            case Action.GO_ON if first:", "            case Action.GO_ON:"),
    ),
    _of(
        "sent-again-last",
        "a refused batch is sent again before those that wait",
        APPENDER,
        ("queue.waiting.extendleft(reversed(queue.rejected))", "queue.waiting.extend(queue.rejected)"),
    ),
    _of(
        "other-sequences",
        "a refused batch keeps its sequence number",
        APPENDER,
        ("            queue.next_sequence = queue.resume_sequence\n", ""),
    ),
    _of(
        "sequences-go-on",
        "sequence numbers begin at 0 with another pair",
        APPENDER,
        ("queue.next_sequence, queue.proven = 0, False", "pass"),
    ),
    _of(
        "lost-is-refused",
        "a Produce without an answer ends the transaction",
        APPENDER,
        (
            "                if not isinstance(failure, RequestNotSent):\n                    raise",
            "                if False:\n                    raise",
        ),
    ),
)
