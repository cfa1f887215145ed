"""Ferry without one of its rules, for each rule in turn: the simulation must find every one of these mutants.

`python -m tests.simulation.mutants` prints how many seeds it took to find each, as the table of docs/evidence/simulated-mutants.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

from tests.simulation.mutants_of_lanes import COORDINATION, DRIVER, FEED, FENCING, LANE, OF_LANES
from tests.simulation.mutants_of_readers import OF_READERS
from tests.simulation.mutating import ROOT, Mutant, first_found
from tests.simulation.mutating import mutant_of as _of

# A mutant that no seed of so many finds is not found.
SEEDS = 400


# This rule holds where the comparison of positions does, so that one is left out together with it.
NO_PROOF = _of(
    "no-proof-after-taking",
    "having taken lanes, a driver proves that it still holds the run",
    FENCING,
    ("        pairs = self._identities(lanes)\n        self.confirm()\n", "        pairs = self._identities(lanes)\n"),
)

ONE_BROKER = _of(
    "one-broker",
    "two brokers are asked for the leaders of Ferry's own topics",
    "clusters.net.connections",
    ("node = self._any_node(asked) if len(asked) < MOST_ASKED else None", "node = None"),
)

LOWER_EPOCH = _of(
    "lower-epoch",
    "a leader with a lower leader epoch than a known one does not count (without the rule above)",
    "clusters.net.leaders",
    ("if not 0 <= leader.epoch < newest.get(number, NO_LEADER).epoch}", "}"),
    beside=ONE_BROKER,
)

# The same for the number of lanes: what the first reading does not find, the second one does, which is for replaced leaders.
NO_SECOND_READING = _of(
    "no-second-reading",
    "a run reads the number of lanes again up to its own record (without the rules about leaders)",
    DRIVER,
    ("return held | lease.take_more_lanes(lease.last_record().lanes)", "return held"),
    beside=LOWER_EPOCH,
)

# Four rules have no mutant, because something else holds in their place, whatever happens here. Unit tests hold the first two:
# - after a refused batch nothing more is sent until all are answered (appender): brokers refuse a batch whose sequence number does not
#   follow, and the first batch of a partition is sent alone. The rule saves requests;
# - a receipt grows only where the last one ended (joined_receipts): a run that follows has one open segment, whose receipts have no gaps;
# - a run reads the number of lanes again up to its own record (driver): of two brokers that are asked for leaders, one knows the leader;
# - without transactions, a segment ends when all is answered (lane): receipts have only accepted batches; the others come in the next one.
MUTANTS = (
    # After a lost answer.
    _of(
        "no-mark",
        "the mark says whether a transaction was committed",
        LANE,
        (" and positions[key].metadata == self._commit_records.mark", ""),
    ),
    _of(
        "no-look-after-commit",
        "after a commit without an answer the positions are read",
        LANE,
        ("if self._in_doubt else {}", "if False else {}"),
    ),
    _of(
        "one-mark",
        "every transaction has a mark of its own",
        "copying.commit_records",
        ("self.mark = clock.token_hex(8)", 'self.mark = "mark"'),
    ),
    _of("no-revert", "after an abandoned transaction the cursors go back", LANE, ("            cursor.revert()  #", "            #")),
    _of(
        "no-end-of-old-transaction",
        "a lane that recovers ends the old transaction before it reads positions",
        LANE,
        ("        self._identity = await self._prove()\n        self._identity = await fence", "        self._identity = await fence"),
    ),
    _of(
        "no-epoch-after-an-abort",
        "without KIP-890, a lane that recovers gets another epoch after its last abort",
        "copying.abandoned_transactions",
        (
            "await coordinator.init(await coordinator.end(identity, committed=False, transactions_v2=False))",
            "await coordinator.end(identity, committed=False, transactions_v2=False)",
        ),
    ),
    _of(
        "commit-sent-again",
        "a commit without an answer is not sent again",
        COORDINATION,
        ("repeatable=again or not committed)", "repeatable=True)"),
    ),
    _of(
        "positions-sent-again",
        "a TxnOffsetCommit without an answer is not sent again",
        COORDINATION,
        ("request, positions, repeatable=False)", "request, positions, repeatable=True)"),
    ),
    _of(
        "no-pair-after-commit",
        "the proof asks for the pair after a commit without an answer",
        COORDINATION,
        ("await self._after_its_commit(identity) if transactions_v2 else identity", "identity"),
    ),
    _of(
        "old-fetches-count",
        "what was fetched before a recovery does not count",
        FEED,
        ("        if generation == self._generation:\n            self._fetching", "        if True:\n            self._fetching"),
        ("fetched.asked.offset != cursor.fetched", "False"),
    ),
    _of(
        "clock-once",
        "a lane that follows looks at the wall clock again",
        "copying.following",
        ("        self.until = min(self.until, now + left)\n", ""),
    ),
    # Fences.
    _of(
        "lane-without-condition",
        "a lane replaces only the pair that it holds",
        LANE,
        (
            "return await self._coordinator.prove(self._identity, transactions_v2=self._transactions_v2)",
            "return await self._coordinator.init()",
        ),
    ),
    _of(
        "no-fence-of-lanes",
        "a run takes every lane before it reads positions",
        DRIVER,
        (
            """        with named_when_slow(self._say, "taking the flow over from earlier runs"):
            held = self._take_over(lease)
        with named_when_slow(self._say, "planning the lanes"):
            seen, plans = self._plans.plan(lease, self._plans.decide, for_a_run=True)
""",
            """        seen, plans = self._plans.plan(lease, self._plans.decide, for_a_run=True)
        held = self._take_over(lease)
        if True:
""",
        ),
    ),
    NO_PROOF,
    _of(
        "no-comparison",
        "a lane compares its positions with the group's (without the proof after taking)",
        LANE,
        (" if not cursor.agrees_with(positions.get(key))}", " if False}"),
        beside=NO_PROOF,
        harm="differs from record",
    ),
    _of(
        "no-proof-before-taking-back",
        "an older driver does not take lanes back",
        FENCING,
        ("        self.confirm()\n        pairs = self._identities(lanes)\n", "        pairs = self._identities(lanes)\n"),
    ),
    _of(
        "proof-without-an-end",
        "a proof ends what is open before it asks for the next epoch",
        COORDINATION,
        (
            "return await self.init(await self.end(identity, committed=False, transactions_v2=transactions_v2))",
            "return await self.init(identity)",
        ),
    ),
    _of(
        "run-without-condition",
        "the run id is proven with the pair that the run holds",
        FENCING,
        (
            "return await self._coordinator.prove(self.identity, transactions_v2=await self._coordinator.transactions_v2())",
            "return await self._coordinator.init()",
        ),
    ),
    _of(
        "fewer-lanes",
        "a run fences every lane that was ever used (without the second reading too)",
        FENCING,
        ("lanes=max(found.lanes, number_of_lanes(0, self._flow.lanes))", "lanes=number_of_lanes(0, self._flow.lanes)"),
        beside=NO_SECOND_READING,
    ),
    _of(
        "fenced-goes-on",
        "a lane that was fenced ends",
        LANE,
        (
            "except (OutcomeUnknown, RequestLost, RequestNotSent) as problem:\n                recoveries",
            "except (OutcomeUnknown, RequestLost, RequestNotSent, Fenced) as problem:\n                recoveries",
        ),
        (
            "return await self._coordinator.prove(self._identity, transactions_v2=self._transactions_v2)",
            "return await self._coordinator.init()",
        ),
    ),
    _of(
        "no-fence-of-writers",
        "without transactions, a run fences the writers of older runs",
        FENCING,
        ("            if not others:\n                return\n", "            return\n"),
    ),
    _of(
        "same-epoch",
        "with transaction.version 2 every transaction has an epoch of its own",
        COORDINATION,
        ("if transactions_v2 and answer.producer_id >= 0", "if False"),
    ),
    # Leaders that were replaced without knowing it.
    ONE_BROKER,
    LOWER_EPOCH,
    _of(
        "no-mark-in-ledger",
        "a backfill reads the ledger up to its own record (without the two rules above)",
        DRIVER,
        ("            lease.mark_ledger()\n", "            pass\n"),
        beside=LOWER_EPOCH,
        harm="differs from record",
    ),
    _of(
        "hanging-at-old-leader",
        "a transaction hangs only if the leader is the one that two brokers name",
        "copying.abandoned_transactions",
        ("        told = {key: found for key, found in told.items() if leaders.of(*key) == asked[key]}\n", ""),
    ),
    _of("old-pair", "records are sent with the pair of the lane", LANE, ("        self._records.adopt(identity)\n", "")),
    # The source.
    _of(
        "uncommitted",
        "only committed records are read",
        "clusters.logs.fetching",
        ("    isolation: int = READ_COMMITTED,", "    isolation: int = READ_UNCOMMITTED,"),
    ),
    _of("aborted-copied", "aborted records are left out", FEED, ("aborted=fetched.aborted,", "aborted=(),")),
    _of(
        "planned-end",
        "a run copies to the end that its plan saw",
        FEED,
        ("        end, excluded = segment.end, task.excluded\n", "        end, excluded = segment.end - 1, task.excluded\n"),
    ),
    _of(
        "truncation-unseen",
        "a plan compares leader epochs: the source may have lost records that were copied",
        "copying.partition_plan",
        ("    if facts.truncation is not None:\n        return _truncated", "    if False:\n        return _truncated"),
    ),
    _of(
        "rewritten-unseen",
        "a log that ends at the position is compared too, if its leader was elected since",
        "copying.snapshot",
        ("        return diverged_logs(opened.source, later).keys()\n", "        return set()\n"),
    ),
    _of(
        "lane-past-truncation",
        "a lane stops a partition whose log was truncated before its position",
        FEED,
        ("        elif diverged is not None and diverged.proven:", "        elif False:"),
    ),
    # Both directions under one name.
    _of(
        "copied-back",
        "a run leaves out what the other flow wrote",
        "copying.loop_guard",
        ("union([*standing, *declared]), max", "union(declared), max"),
    ),
    _of(
        "ledger-read-once",
        "a run that follows reads the other flow's ledger after each fetch",
        "copying.guard_tail",
        ("        while self._covered < wanted:", "        while False:"),
    ),
    _of(
        "beyond-the-end-forgotten",
        "a lane knows what receipts name beyond the planned end",
        "copying.guard_reading",
        ("draft.beyond(entry.end)),", "()),"),
    ),
    _of(
        "committed-receipts",
        "a receipt of the other flow counts before its transaction ends (else: it is waited for)",
        "copying.guard_reading",
        ("    reader = opened.source.reader(committed=False)\n", "    reader = opened.source.reader()\n"),
        ("        for record in reader.read(self.topic):", "        for record in reader.read(self.topic, complete=False):"),
    ),
    _of(
        "other-flow-unknown",
        "where the other flow copies the same topics, somebody has decided about its records",
        "copying.guard_reading",
        ("            two_way=entry.topic in two_way,", "            two_way=False,"),
    ),
    # Reports.
    _of("report-of-one-try", "a report has all tries of a run", "pipeline.run", ("if records.opened is not None:  #", "if False:  #")),
    _of("report-of-all-runs", "a report counts its own run", "pipeline.report_reading", ("if receipt.run_id == request.run_id]", "]")),
    _of("failures-forgotten", "a report names what failed", DRIVER, ("self._plans.stop(key, error, problem)", "pass")),
    *OF_LANES,
    *OF_READERS,
)


def _asked(mutant: Mutant, options: Any) -> str:
    """A row of the table, from a process of its own."""
    command = [
        sys.executable,
        "-m",
        "tests.simulation.mutants",
        "--one",
        mutant.name,
        "--seed",
        str(options.seed),
        "--seeds",
        str(options.seeds),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    told = done.stdout.strip() or f"| **not tried** | {done.stderr.strip()[-200:]} |"
    return f"| {mutant.rule} | `{mutant.module.removeprefix('ferry.')}` {told}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("--one", help="only this mutant, in this process")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many seeds at most")
    parser.add_argument("names", nargs="*", help="only these mutants")
    options = parser.parse_args()
    if options.one:
        mutant = next(one for one in MUTANTS if one.name == options.one)
        found = first_found(mutant, options.seed, options.seeds)
        print(f"| not in {options.seeds} | |" if found is None else f"| {found[0] or 'scene'} | {found[1][:160]} |")
        return
    print("| rule that is missing | module | seeds | what was seen |\n|---|---|---|---|")
    for mutant in MUTANTS:
        if not options.names or mutant.name in options.names:
            print(_asked(mutant, options), flush=True)


if __name__ == "__main__":
    main()
