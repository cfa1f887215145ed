"""The rules that make a flow exactly-once, each of which a model can leave out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """`bumps`: KIP-890's protocol on the target. All others: True is what Ferry does."""

    bumps: bool = True
    fence_at_start: bool = True  # a run takes every lane before anything else
    fence_before_reading: bool = True  # and reads positions and coverage only then
    prove_after_taking: bool = True  # having taken lanes, a driver proves that it still holds the run
    prove_before_blaming: bool = True  # who finds that positions disagree proves its hold before it says so
    prove_before_taking_back: bool = True  # an older driver does not take lanes back
    first_attempt_only: bool = True  # a second attempt of a task does nothing
    two_inits: bool = True  # a task replaces the driver's pair, then the pair that it got
    conditional_recovery: bool = True  # a task re-inits only with the pair that it holds
    look_after_lost_commit: bool = True  # after a commit without an answer the position tells what became of it
    look_at_mark: bool = True  # by the mark of the transaction, not by the offset
    positions_sent_once: bool = True  # a TxnOffsetCommit without an answer is not sent again
    receipt_inside: bool = True  # receipts are in the transaction of their records
    grow_what_is_committed: bool = True  # a receipt grows from what a commit wrote, never from what was abandoned
    read_to_bound: bool = True  # ledger and state are read up to a bound that is captured first, whatever is open
