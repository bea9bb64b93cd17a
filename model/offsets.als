/*
 * Bounds beside a topic: each bound of a producer is sent with the offset that it follows, its cut.
 *
 * One partition. Producers write messages, and send bounds through the stream of bounds, in any order of arrival; a query
 * reads the topic up to some offset, and is told a bound for it. The rest is as in commits.als.
 */
module offsets

open util/ordering[Time] as times
open util/ordering[Offset] as offsets

/** Rowtimes. The first one stands for "no bound". */
sig Time {}
sig Offset {}

enum Rule { CutBehindMessages, PromiseKept, CutReached, Weakest }
/** The rule that does not hold; none in the model itself. */
one sig Mutant { rule: lone Rule }
pred holds[r: Rule] { r not in Mutant.rule }

sig Producer { var promised: Time }
sig Message { from: Producer, time: Time, at: Offset }
fact { at in Message lone -> Offset }
/** Messages that are in the topic, and that a producer has given to its client, which writes them later. */
var sig Written, Pending in Message {}

/** A bound with its cut: it counts for those who have read all messages below `upTo`. */
sig Cut { of: Producer, bound: Time, upTo: Offset }
var sig Sent in Cut {}

/** It has read all messages below `readTo`, and was told `told` for them. */
sig Query { var readTo: Offset, var told: Time }

/** The offset that the next message gets. */
fun end: Offset { offsets/min[Offset - Written.at] }
fun reached[p: Producer, o: Offset]: Time {
  times/max[times/first + { c: of.p & Sent | holds[CutReached] implies offsets/lte[c.upTo, o] }.bound]
}
fun inForce[o: Offset]: Time {
  holds[Weakest] => times/min[{ t: Time | some p: Producer | t = reached[p, o] }]
  else times/max[{ t: Time | some p: Producer | t = reached[p, o] }]
}

pred start {
  Producer.promised = times/first and no Written + Pending + Sent and Query.readTo = offsets/first and Query.told = times/first
}
pred sameTopic { Written' = Written and Pending' = Pending }
pred sameQueries { readTo' = readTo and told' = told }

/** A producer gives a message to its client, which refuses one below the producer's own bound. */
pred produce[m: Message] {
  m not in Written + Pending and (holds[PromiseKept] implies times/gte[m.time, m.from.promised])
  Pending' = Pending + m and Written' = Written and Sent' = Sent and promised' = promised and sameQueries
}
pred write[m: Message] {
  m in Pending and some end and m.at = end
  Pending' = Pending - m and Written' = Written + m and Sent' = Sent and promised' = promised and sameQueries
}
/** A producer sends a bound behind its messages: none of them is on its way, and the cut lies at the end of the topic. */
pred send[c: Cut] {
  c not in Sent and times/gte[c.bound, c.of.promised] and some end and c.upTo = end
  holds[CutBehindMessages] implies no Pending & from.(c.of)
  Sent' = Sent + c and promised' = promised ++ c.of -> c.bound and sameTopic and sameQueries
}
/** A query reads on, and is told the bound of the offset that it has come to. */
pred read[q: Query] {
  let o = q.readTo' | offsets/gte[o, q.readTo] and (some end implies offsets/lte[o, end]) and q.told' = inForce[o]
  all other: Query - q | other.readTo' = other.readTo and other.told' = other.told
  Sent' = Sent and promised' = promised and sameTopic
}
pred idle { Sent' = Sent and promised' = promised and sameTopic and sameQueries }
fact { start and always (
  (some m: Message | produce[m] or write[m]) or (some c: Cut | send[c]) or (some q: Query | read[q]) or idle) }

/* ---- Promises. ---- */
pred NoMessageLiesBelowTheBoundThatIsToldAtItsOffsetOrBefore {
  always all q: Query, m: Written | offsets/gte[m.at, q.readTo] implies times/gte[m.time, q.told]
}

/* ---- Commands: a promise holds; it fails under each mutant; what it is about occurs. ---- */
check NoMessageLiesBelowTheBoundThatIsToldAtItsOffsetOrBefore { no Mutant.rule implies NoMessageLiesBelowTheBoundThatIsToldAtItsOffsetOrBefore } for 3 but 1 Query, 8..8 steps
run NoMessageLiesBelowTheBoundThatIsToldAtItsOffsetOrBefore_without_CutBehindMessages { Mutant.rule = CutBehindMessages and not NoMessageLiesBelowTheBoundThatIsToldAtItsOffsetOrBefore } for 3 but 1 Query, 8..8 steps
run NoMessageLiesBelowTheBoundThatIsToldAtItsOffsetOrBefore_without_PromiseKept { Mutant.rule = PromiseKept and not NoMessageLiesBelowTheBoundThatIsToldAtItsOffsetOrBefore } for 3 but 1 Query, 8..8 steps
run NoMessageLiesBelowTheBoundThatIsToldAtItsOffsetOrBefore_without_CutReached { Mutant.rule = CutReached and not NoMessageLiesBelowTheBoundThatIsToldAtItsOffsetOrBefore } for 3 but 1 Query, 8..8 steps
run NoMessageLiesBelowTheBoundThatIsToldAtItsOffsetOrBefore_without_Weakest { Mutant.rule = Weakest and not NoMessageLiesBelowTheBoundThatIsToldAtItsOffsetOrBefore } for 3 but 1 Query, 8..8 steps
run NoMessageLiesBelowTheBoundThatIsToldAtItsOffsetOrBefore_occurs { no Mutant.rule and eventually (some q: Query, m: Written | q.told != times/first and offsets/gte[m.at, q.readTo]) } for 3 but 1 Query, 8..8 steps
