/*
 * Folding: the cuts of a producer that all registered queries have passed become one, which holds the bound at the
 * weakest of what each of them held it at, until offsets have reached all of them.
 *
 * One partition, as in offsets.als. A query registers the offset that it has reached, and a batch of it may run again from
 * there on; other queries begin at any offset.
 */
module folding

open util/ordering[Time] as times
open util/ordering[Offset] as offsets

/** Rowtimes. The first one stands for "no bound". */
sig Time {}
sig Offset {}

enum Rule { AllRegistered, WeakestHold, LastCut }
/** The rule that does not hold; none in the model itself. */
one sig Mutant { rule: lone Rule }
pred holds[r: Rule] { r not in Mutant.rule }

/** Its cuts that were folded hold the bound at `foldedHold` until offsets have reached `foldedTo`. */
sig Producer { var promised: Time, var foldedHold: lone Time, var foldedTo: lone Offset }
/** A bound with its cut. Until offsets have reached `upTo` the producer holds the bound at what it had promised before. */
sig Cut { of: Producer, bound: Time, upTo: Offset, var hold: lone Time }
var sig Sent, Folded in Cut {}
sig Query { var reached: Offset }
var sig Registered in Query {}

fun ahead[cuts: set Cut, o: Offset]: set Cut { { c: cuts | offsets/gt[c.upTo, o] } }
/** The bound at an offset with all cuts, and with what folding has left of them. */
fun whole[o: Offset]: Time { times/min[Producer.promised + ahead[Sent, o].hold] }
fun left[o: Offset]: Time {
  times/min[Producer.promised + ahead[Sent - Folded, o].hold + { p: Producer | offsets/gt[p.foldedTo, o] }.foldedHold]
}

pred start {
  Producer.promised = times/first and no foldedHold and no foldedTo and no hold and no Sent + Folded
  no Registered and Query.reached = offsets/first
}
pred sameCuts { Sent' = Sent and Folded' = Folded and hold' = hold and promised' = promised
  and foldedHold' = foldedHold and foldedTo' = foldedTo }
pred sameQueries { Registered' = Registered and reached' = reached }

pred send[c: Cut] {
  c not in Sent and times/gt[c.bound, c.of.promised] and all o: of.(c.of) & Sent | offsets/lte[o.upTo, c.upTo]
  Sent' = Sent + c and Folded' = Folded and hold' = hold + c -> c.of.promised
  promised' = promised ++ c.of -> c.bound and foldedHold' = foldedHold and foldedTo' = foldedTo and sameQueries
}
/** A query registers what it has reached, for the first time or again. */
pred register[q: Query] {
  Registered' = Registered + q and offsets/gte[q.reached', q.reached] and all o: Query - q | o.reached' = o.reached
  sameCuts
}
fun passed[p: Producer]: set Cut {
  { c: of.p & Sent - Folded | some q: Registered | offsets/lte[c.upTo, q.reached] }
  & { c: Cut | holds[AllRegistered] implies all q: Registered | offsets/lte[c.upTo, q.reached] }
}
pred fold[p: Producer] {
  some passed[p] and Folded' = Folded + passed[p]
  let held = passed[p].hold + p.foldedHold, ends = passed[p].upTo + p.foldedTo {
    foldedHold' = foldedHold ++ p -> (holds[WeakestHold] => times/min[held] else times/max[held])
    foldedTo' = foldedTo ++ p -> (holds[LastCut] => offsets/max[ends] else offsets/min[ends])
  }
  Sent' = Sent and hold' = hold and promised' = promised and sameQueries
}
pred idle { sameCuts and sameQueries }
fact { start and always ((some c: Cut | send[c]) or (some q: Query | register[q]) or (some p: Producer | fold[p]) or idle) }

/* ---- Promises. ---- */
pred ABoundWhoseCutsWereFoldedIsWeakerNeverWrong { always all o: Offset | times/lte[left[o], whole[o]] }
pred ABatchOfARegisteredQueryThatRunsAgainIsToldTheSameBound {
  always all p: Producer | fold[p] implies
    all q: Registered, o: Offset | offsets/gte[o, q.reached] implies (left[o])' = left[o]
}

/* ---- Commands: a promise holds; it fails under each mutant; what it is about occurs. ---- */
check ABoundWhoseCutsWereFoldedIsWeakerNeverWrong { no Mutant.rule implies ABoundWhoseCutsWereFoldedIsWeakerNeverWrong } for 3 but 2 Producer, 2 Query, 7..7 steps
run ABoundWhoseCutsWereFoldedIsWeakerNeverWrong_without_WeakestHold { Mutant.rule = WeakestHold and not ABoundWhoseCutsWereFoldedIsWeakerNeverWrong } for 3 but 2 Producer, 2 Query, 7..7 steps
run ABoundWhoseCutsWereFoldedIsWeakerNeverWrong_without_LastCut { Mutant.rule = LastCut and not ABoundWhoseCutsWereFoldedIsWeakerNeverWrong } for 3 but 2 Producer, 2 Query, 7..7 steps
run ABoundWhoseCutsWereFoldedIsWeakerNeverWrong_occurs { no Mutant.rule and eventually (some o: Offset | left[o] != whole[o]) } for 3 but 2 Producer, 2 Query, 7..7 steps
check ABatchOfARegisteredQueryThatRunsAgainIsToldTheSameBound { no Mutant.rule implies ABatchOfARegisteredQueryThatRunsAgainIsToldTheSameBound } for 3 but 2 Producer, 2 Query, 7..7 steps
run ABatchOfARegisteredQueryThatRunsAgainIsToldTheSameBound_without_AllRegistered { Mutant.rule = AllRegistered and not ABatchOfARegisteredQueryThatRunsAgainIsToldTheSameBound } for 3 but 2 Producer, 2 Query, 7..7 steps
run ABatchOfARegisteredQueryThatRunsAgainIsToldTheSameBound_occurs { no Mutant.rule and eventually (some p: Producer, q: Registered | fold[p] and some ahead[of.p & Sent, q.reached]) } for 3 but 2 Producer, 2 Query, 7..7 steps
