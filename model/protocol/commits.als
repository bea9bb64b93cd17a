/*
 * Commits, leases, takeover, a standby, readers and removal: what processes and a store do to one stream.
 *
 * A step is one message, one transaction of the store, or one fault. Each assertion has the name of a promise in
 * docs/guarantees.md. `Mutant.rule` weakens one rule of the store, and the assertion that needs the rule must then
 * fail; `run` shows that what an assertion is about can happen. check.py runs all of it.
 */
module protocol/commits

open util/ordering[Time] as times
open util/ordering[Number] as numbers
open util/ordering[Epoch] as epochs

/** Rowtimes. The first one stands for "no bound": no row lies below it. */
sig Time {}
/** Numbers of commits. The first one is that of a producer without a commit. */
sig Number {}
/** Epochs of a producer: each process that attaches gets the next one. */
sig Epoch {}

enum Rule { Fencing, NextNumber, Repeats, LateRows, Monotone, Weakest, Uptime, Stalls, Joins, Readers }
/** The rule that does not hold; none in the model itself. */
one sig Mutant { rule: lone Rule }
pred holds[r: Rule] { r not in Mutant.rule }

sig Row { time: Time }

/** What the store knows of a producer. */
sig Producer { var epoch: Epoch, var number: Number, var promised: Time }
/** Those that the clock waits for. */
var sig Counted in Producer {}
/** Those whose lease is over, and which the next look at leases detaches. */
var sig Silent in Producer {}

one sig Store { var bound: Time }
var sig Logged, Rejected, Removed in Row {}
/** Rows that were logged again although they were there. */
var sig Twice in Row {}
/** The store answers. */
var lone sig Up in Store {}

/** A process with a sink: one commit at a time, which it repeats under its number until it has an answer. */
sig Process {
  of: Producer, var held: lone Epoch, var done: Number, var batch: set Row, var upTo: Time
}
var sig Stopped, Dead in Process {}
/** It has a commit without an answer; the message is on its way; the answer is. */
var sig Sending, Asked, Answered in Process {}
/** It was told that it is fenced, or that the store has lost commits. */
var sig Failed in Process {}
/** It stands still within its transaction, so nobody else can renew a lease. */
var lone sig Locker in Process {}
var sig Acknowledged in Row {}
/** Those that have an acknowledged commit which the store has forgotten. */
var sig Bereft in Process {}

/** What the standby lacks: the last commit, with what was there before it. */
one sig Standby { var lacks: lone Producer, var lackedRows: set Row, var boundBefore: Time, var promisedBefore: Time }

sig Reader { var got: set Row, var told: Time }
var sig Known in Reader {}

fun stronger[a, b: Time]: Time { times/gte[a, b] => a else b }
fun weakest[counted: set Producer, promises: Producer -> Time]: Time {
  { t: counted.promises | all u: counted.promises | times/lte[t, u] }
}
/** The bound that follows: it never falls, and is that of the weakest producer that counts. */
fun following[counted: set Producer, promises: Producer -> Time]: Time {
  no counted => Store.bound
  else holds[Weakest] and holds[Monotone] => stronger[Store.bound, weakest[counted, promises]]
  else holds[Monotone] => stronger[Store.bound, { t: counted.promises | all u: counted.promises | times/gte[t, u] }]
  else weakest[counted, promises]
}

pred start {
  Producer.epoch = epochs/first and Producer.number = numbers/first and Producer.promised = times/first
  no Counted and no Silent and Store.bound = times/first and no Logged + Rejected + Removed + Twice and Up = Store
  no held and Process.done = numbers/first and no batch and Process.upTo = times/first
  no Stopped + Dead + Sending + Asked + Answered + Failed + Locker + Bereft and no Acknowledged
  no lacks and no lackedRows and Standby.boundBefore = times/first and Standby.promisedBefore = times/first
  no got and Reader.told = times/first and no Known
}

/* What a step leaves as it is. */
pred sameLog { Logged' = Logged and Rejected' = Rejected and Twice' = Twice and Removed' = Removed }
pred sameBound { Store.bound' = Store.bound }
pred sameProducers { epoch' = epoch and number' = number and promised' = promised }
pred sameClock { Counted' = Counted and Silent' = Silent }
pred sameStandby { lacks' = lacks and lackedRows' = lackedRows and boundBefore' = boundBefore
  and promisedBefore' = promisedBefore }
pred sameCommits { held' = held and done' = done and batch' = batch and upTo' = upTo and Sending' = Sending }
pred sameMessages { Asked' = Asked and Answered' = Answered and Failed' = Failed }
pred sameAcks { Acknowledged' = Acknowledged and Bereft' = Bereft }
pred sameLives { Stopped' = Stopped and Dead' = Dead and Locker' = Locker }
pred sameReaders { got' = got and told' = told and Known' = Known }
pred sameUp { Up' = Up }
pred sameStore { sameLog and sameBound and sameProducers and sameClock and sameStandby and sameUp }
pred sameOutside { sameCommits and sameMessages and sameAcks and sameLives and sameReaders }

fun running: set Process { Process - Stopped - Dead - Failed }
pred free { some Up and no Locker }

/** A process takes the producer: it begins at the stream's bound, whatever was promised under the name before. */
pred attach[p: Process] {
  p in running and no p.held and free and some epochs/next[p.of.epoch]
  epoch' = epoch ++ p.of -> epochs/next[p.of.epoch]
  held' = held ++ p -> p.of.epoch'
  done' = done ++ p -> p.of.number
  let joined = (holds[Joins] and holds[Monotone]) => stronger[p.of.promised, Store.bound] else times/first | {
    promised' = promised ++ p.of -> joined
    Counted' = Counted + p.of and Silent' = Silent - p.of
    Store.bound' = following[Counted', promised']
  }
  number' = number and sameLog and sameStandby and sameUp and sameMessages and sameAcks and sameLives and sameReaders
  batch' = batch and upTo' = upTo and Sending' = Sending
}

/** The process has rows and a bound that it has not sent before, and begins a commit. */
pred send[p: Process] {
  p in running - Sending and some p.held and some numbers/next[p.done]
  batch' - p -> Row = batch - p -> Row and upTo' = upTo ++ p -> p.upTo'
  some p.batch' or p.upTo' != p.upTo
  no p.batch' & (Process.batch + Logged + Rejected + Removed + Acknowledged)
  times/gte[p.upTo', p.upTo] and all r: p.batch' | times/gte[r.time, p.upTo]
  Sending' = Sending + p and held' = held and done' = done
  Asked' = Asked + p and Answered' = Answered and Failed' = Failed
  sameStore and sameAcks and sameLives and sameReaders
}

/** The store gets the message. The process may stand still or be dead by now. */
pred land[p: Process] {
  p in Asked and some Up and Locker in p
  let n = numbers/next[p.done], x = p.of |
    (holds[Fencing] and p.held != x.epoch) => refused[p]
    else (x.number = n) => (holds[Repeats] => answered[p] else landed[p, n, x])
    else (n != numbers/next[x.number]) => (holds[NextNumber] => refused[p] else landed[p, n, x])
    else landed[p, n, x]
  Locker' = Locker - p and Stopped' = Stopped and Dead' = Dead
  sameCommits and sameAcks and sameReaders and sameUp and epoch' = epoch
}
pred refused[p: Process] {
  Asked' = Asked - p and Answered' = Answered and Failed' = Failed + p
  sameLog and sameBound and number' = number and promised' = promised and sameClock and sameStandby
}
pred answered[p: Process] {
  Asked' = Asked - p and Answered' = Answered + p and Failed' = Failed
  sameLog and sameBound and number' = number and promised' = promised and sameClock and sameStandby
}
pred landed[p: Process, n: Number, x: Producer] {
  Asked' = Asked - p and Answered' = Answered + p and Failed' = Failed
  let late = { r: p.batch | holds[LateRows] and times/lt[r.time, Store.bound] }, kept = p.batch - late {
    Logged' = Logged + kept and Twice' = Twice + (kept & (Logged + Removed)) and Rejected' = Rejected + late
    Removed' = Removed
    lacks' = Standby -> x and lackedRows' = Standby -> kept
    boundBefore' = Standby -> Store.bound and promisedBefore' = Standby -> x.promised
  }
  number' = number ++ x -> n
  let joined = (x in Counted or not holds[Monotone]) => x.promised else stronger[x.promised, Store.bound] |
    promised' = promised ++ x -> stronger[joined, p.upTo]
  Counted' = Counted + x and Silent' = Silent - x
  Store.bound' = following[Counted', promised']
}

/** The answer comes: the rows are acknowledged. */
pred acknowledge[p: Process] {
  p in Answered & running
  Acknowledged' = Acknowledged + p.batch and Bereft' = Bereft
  done' = done ++ p -> numbers/next[p.done]
  Sending' = Sending - p and Answered' = Answered - p and Asked' = Asked and Failed' = Failed
  held' = held and upTo' = upTo and batch' = batch - p -> Row
  sameStore and sameLives and sameReaders
}

/** A message or an answer is lost; the process sends the same commit again. */
pred again[p: Process] {
  p in (Sending & running) - Answered - Asked
  Asked' = Asked + p and Answered' = Answered and Failed' = Failed
  sameStore and sameCommits and sameAcks and sameLives and sameReaders
}
pred lose[p: Process] {
  p in Asked + Answered
  Asked' = Asked - p and Answered' = Answered - p and Failed' = Failed
  Locker' = Locker - p and Stopped' = Stopped and Dead' = Dead
  sameStore and sameCommits and sameAcks and sameReaders
}

/** A process stands still, perhaps within its transaction; goes on; dies. */
pred stop[p: Process] {
  p in running and Stopped' = Stopped + p and Dead' = Dead
  Locker' = Locker or (p in Asked and no Locker and some Up and Locker' = p)
  sameStore and sameCommits and sameMessages and sameAcks and sameReaders
}
pred goOn[p: Process] {
  p in Stopped and Stopped' = Stopped - p and Dead' = Dead and Locker' = Locker
  sameStore and sameCommits and sameMessages and sameAcks and sameReaders
}
pred die[p: Process] {
  p in Process - Dead and Dead' = Dead + p and Stopped' = Stopped - p and Locker' = Locker - p
  sameStore and sameCommits and sameMessages and sameAcks and sameReaders
}

/** The store goes away, and comes back. */
pred away { some Up and no Up' and no Locker' and Stopped' = Stopped and Dead' = Dead and no Asked'
  and Answered' = Answered and Failed' = Failed
  and sameLog and sameBound and sameProducers and sameClock and sameStandby and sameCommits and sameAcks and sameReaders }
pred back { no Up and Up' = Store and sameLog and sameBound and sameProducers and sameClock and sameStandby and sameOutside }

/** As much time passes as a lease lasts. Whoever lives renews in it, if the store is there and nobody locks it. */
pred pass {
  let alive = { x: Counted | some p: running | p.of = x and p.held = x.epoch } |
    Silent' = Silent + (free => Counted - alive
      else some Up => (holds[Stalls] => none else Counted)
      else (holds[Uptime] => none else Counted))
  Counted' = Counted and sameLog and sameBound and sameProducers and sameStandby and sameUp and sameOutside
}
/** A look at the leases: the clock no longer waits for one that is silent. */
pred expire[x: Producer] {
  x in Silent and free and Counted' = Counted - x and Silent' = Silent - x
  Store.bound' = following[Counted', promised']
  sameLog and sameProducers and sameStandby and sameUp and sameOutside
}

/** The standby takes over. It lacks the last commit, if that was not waited for. */
pred failover {
  some Standby.lacks and let x = Standby.lacks, n = x.number {
    Logged' = Logged - Standby.lackedRows and Rejected' = Rejected and Twice' = Twice and Removed' = Removed
    number' = number ++ x -> numbers/prev[n] and epoch' = epoch and promised' = promised ++ x -> Standby.promisedBefore
    Store.bound' = Standby.boundBefore
    Bereft' = Bereft + { p: Process | p.of = x and p.held = x.epoch and p.done = n }
  }
  no lacks' and no lackedRows' and boundBefore' = boundBefore and promisedBefore' = promisedBefore
  Acknowledged' = Acknowledged and no Asked' and Answered' = Answered and Failed' = Failed
  sameClock and sameUp and sameCommits and no Locker' and Stopped' = Stopped and Dead' = Dead and sameReaders
}

/** A reader registers at the beginning; reads on: rows and the bound behind them, at one moment of the log. */
pred register[r: Reader] {
  r not in Known and no Removed and Known' = Known + r and got' = got and told' = told
  sameStore and sameCommits and sameMessages and sameAcks and sameLives
}
pred read[r: Reader] {
  r in Known and some Up and r.got' = r.got + Logged and r.told' = Store.bound
  all o: Reader - r | o.got' = o.got and o.told' = o.told
  Known' = Known and sameStore and sameCommits and sameMessages and sameAcks and sameLives
}
/** Rows below the bound are removed, once all registered readers have them. */
pred remove {
  some Removed' - Removed and Removed in Removed' and Removed' - Removed in Logged
  all r: Removed' - Removed | times/lt[r.time, Store.bound] and (holds[Readers] => all k: Known | r in k.got)
  Logged' = Logged - Removed' and Rejected' = Rejected and Twice' = Twice
  free and sameBound and sameProducers and sameClock and sameStandby and sameUp and sameOutside
}

pred idle { sameStore and sameOutside }
pred step {
  (some p: Process | attach[p] or send[p] or land[p] or acknowledge[p] or again[p] or lose[p] or stop[p] or goOn[p]
    or die[p]) or away or back or pass or (some x: Producer | expire[x]) or failover
    or (some r: Reader | register[r] or read[r]) or remove or idle
}
fact { always step }
