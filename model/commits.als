/*
 * What protocol/commits.als promises: each assertion has the name of a promise in docs/guarantees.md.
 */
module commits

open protocol/commits
open util/ordering[Time] as times
open util/ordering[Number] as numbers

fact { start }

/* ---- Promises. A standby that lacks commits breaks those that begin with `kept`. ---- */
pred kept { always not failover }

pred TheStreamsBoundNeverFalls {
  kept implies always times/gte[Store.bound', Store.bound]
}
pred NoAcceptedRowLiesBelowABoundThatWasPublishedBefore {
  kept implies always all r: Reader, row: Logged' - Logged | times/gte[row.time, r.told]
}
pred EachAcknowledgedRowIsInTheStreamOnce {
  kept implies always (Acknowledged in Logged + Rejected + Removed and no Twice)
}
pred AProducerThatWasTakenOverIsFenced {
  always all p: Process | (land[p] and p.held != p.of.epoch) implies (sameLog and number' = number and sameBound)
}
pred NothingIsAcknowledgedOnceTheStoreHasForgottenAcknowledgedRows {
  always all p: Bereft | not acknowledge[p]
}
pred AProducerThatKeepsItsPromisesIsNeverLateBecauseOfAnother {
  kept implies always all x: Counted | times/lte[Store.bound, x.promised]
}
pred ALeaseDoesNotEndBecauseTheStoreWasAwayOrSomebodyStoodStill {
  always all x: Producer | expire[x] implies
    once (pass and free and no p: running | p.of = x and p.held = x.epoch)
}
pred ARegisteredReaderGetsEachRow {
  always all k: Known | Removed in k.got
}

/* ---- Commands: a promise holds; it fails under each mutant; what it is about occurs. ---- */
check TheStreamsBoundNeverFalls { no Mutant.rule implies TheStreamsBoundNeverFalls } for 3 but 1 Reader, 9..9 steps
run TheStreamsBoundNeverFalls_without_Monotone { Mutant.rule = Monotone and not TheStreamsBoundNeverFalls } for 3 but 1 Reader, 9..9 steps
run TheStreamsBoundNeverFalls_occurs { no Mutant.rule and eventually Store.bound != times/first } for 3 but 1 Reader, 9..9 steps
check NoAcceptedRowLiesBelowABoundThatWasPublishedBefore { no Mutant.rule implies NoAcceptedRowLiesBelowABoundThatWasPublishedBefore } for 3 but 1 Reader, 9..9 steps
run NoAcceptedRowLiesBelowABoundThatWasPublishedBefore_without_LateRows { Mutant.rule = LateRows and not NoAcceptedRowLiesBelowABoundThatWasPublishedBefore } for 3 but 1 Reader, 9..9 steps
run NoAcceptedRowLiesBelowABoundThatWasPublishedBefore_occurs { no Mutant.rule and eventually some Rejected } for 3 but 1 Reader, 9..9 steps
check EachAcknowledgedRowIsInTheStreamOnce { no Mutant.rule implies EachAcknowledgedRowIsInTheStreamOnce } for 3 but 1 Reader, 9..9 steps
run EachAcknowledgedRowIsInTheStreamOnce_without_Repeats { Mutant.rule = Repeats and not EachAcknowledgedRowIsInTheStreamOnce } for 3 but 1 Reader, 9..9 steps
run EachAcknowledgedRowIsInTheStreamOnce_occurs { no Mutant.rule and eventually (some p: Process | land[p] and p.of.number = numbers/next[p.done] and p.held = p.of.epoch) } for 3 but 1 Reader, 9..9 steps
check AProducerThatWasTakenOverIsFenced { no Mutant.rule implies AProducerThatWasTakenOverIsFenced } for 3 but 1 Reader, 9..9 steps
run AProducerThatWasTakenOverIsFenced_without_Fencing { Mutant.rule = Fencing and not AProducerThatWasTakenOverIsFenced } for 3 but 1 Reader, 9..9 steps
run AProducerThatWasTakenOverIsFenced_occurs { no Mutant.rule and eventually (some p: Process | land[p] and p.held != p.of.epoch) } for 3 but 1 Reader, 9..9 steps
check NothingIsAcknowledgedOnceTheStoreHasForgottenAcknowledgedRows { no Mutant.rule implies NothingIsAcknowledgedOnceTheStoreHasForgottenAcknowledgedRows } for 3 but 1 Reader, 9..9 steps
run NothingIsAcknowledgedOnceTheStoreHasForgottenAcknowledgedRows_without_NextNumber { Mutant.rule = NextNumber and not NothingIsAcknowledgedOnceTheStoreHasForgottenAcknowledgedRows } for 3 but 1 Reader, 9..9 steps
run NothingIsAcknowledgedOnceTheStoreHasForgottenAcknowledgedRows_occurs { no Mutant.rule and eventually (some p: Bereft & Asked | p in running and land[p]) } for 3 but 1 Reader, 9..9 steps
check AProducerThatKeepsItsPromisesIsNeverLateBecauseOfAnother { no Mutant.rule implies AProducerThatKeepsItsPromisesIsNeverLateBecauseOfAnother } for 3 but 1 Reader, 9..9 steps
run AProducerThatKeepsItsPromisesIsNeverLateBecauseOfAnother_without_Weakest { Mutant.rule = Weakest and not AProducerThatKeepsItsPromisesIsNeverLateBecauseOfAnother } for 3 but 1 Reader, 9..9 steps
run AProducerThatKeepsItsPromisesIsNeverLateBecauseOfAnother_without_Joins { Mutant.rule = Joins and not AProducerThatKeepsItsPromisesIsNeverLateBecauseOfAnother } for 3 but 1 Reader, 9..9 steps
run AProducerThatKeepsItsPromisesIsNeverLateBecauseOfAnother_occurs { no Mutant.rule and eventually (some x: Counted | Store.bound = x.promised and Store.bound != times/first and some Counted - x) } for 3 but 1 Reader, 9..9 steps
check ALeaseDoesNotEndBecauseTheStoreWasAwayOrSomebodyStoodStill { no Mutant.rule implies ALeaseDoesNotEndBecauseTheStoreWasAwayOrSomebodyStoodStill } for 3 but 1 Reader, 9..9 steps
run ALeaseDoesNotEndBecauseTheStoreWasAwayOrSomebodyStoodStill_without_Uptime { Mutant.rule = Uptime and not ALeaseDoesNotEndBecauseTheStoreWasAwayOrSomebodyStoodStill } for 3 but 1 Reader, 9..9 steps
run ALeaseDoesNotEndBecauseTheStoreWasAwayOrSomebodyStoodStill_without_Stalls { Mutant.rule = Stalls and not ALeaseDoesNotEndBecauseTheStoreWasAwayOrSomebodyStoodStill } for 3 but 1 Reader, 9..9 steps
run ALeaseDoesNotEndBecauseTheStoreWasAwayOrSomebodyStoodStill_occurs { no Mutant.rule and eventually (some Locker & Stopped and pass) and eventually (some x: Producer | expire[x]) } for 3 but 1 Reader, 9..9 steps
check ARegisteredReaderGetsEachRow { no Mutant.rule implies ARegisteredReaderGetsEachRow } for 3 but 1 Reader, 9..9 steps
run ARegisteredReaderGetsEachRow_without_Readers { Mutant.rule = Readers and not ARegisteredReaderGetsEachRow } for 3 but 1 Reader, 9..9 steps
run ARegisteredReaderGetsEachRow_occurs { no Mutant.rule and eventually (some Removed and some Known) } for 3 but 1 Reader, 9..9 steps
