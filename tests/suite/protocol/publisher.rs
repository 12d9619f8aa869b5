//! A publisher: put, look, renew or wait, send, look again.

use super::model::{Protocol, Rule, World, age};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Publisher {
    at: At,
    made: Made,
    /// Whether its record is in the log already, and it only looks again.
    is_again: bool,
    /// A record on its way, and how long ago its body was seen. It arrives even when its publisher is killed.
    wire: Option<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum At {
    #[default]
    Create,
    Look,
    /// The body is so old: it is written again.
    Renew(u8),
    /// It saw the body so long ago.
    Seen(u8),
    /// Its record is on its way, and it saw the body so long ago.
    Sent(u8),
    /// Its record is in the log, and it saw the body so long ago when it was.
    Appended(u8),
}

/// What it did to the body that it looks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Made {
    #[default]
    Nothing,
    /// So long ago it sent what made it or wrote it again, when no sweep could have found it old.
    Wrote(u8),
    /// It wrote it again when a sweep could have found it old.
    Renewed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A create that is answered.
    Create,
    /// A create that is done and whose answer is lost.
    CreateUnanswered,
    Look,
    Renew,
    /// An overwrite that is done and whose answer is lost, or that is not done: it looks.
    RenewUnanswered,
    Send,
    /// It waited too long, and begins anew.
    TooLate,
    /// The broker appends the record.
    Append,
    Acknowledge,
    /// It is killed, and started again with the same bytes.
    Crash,
}

impl Publisher {
    pub fn steps(&self, protocol: &Protocol) -> Vec<Step> {
        let mut steps = match self.at {
            At::Create if self.wire.is_some() => vec![],
            At::Create => vec![Step::Create, Step::CreateUnanswered],
            At::Look => vec![Step::Look],
            At::Renew(_) => vec![Step::Renew, Step::RenewUnanswered],
            At::Seen(age) if age > protocol.times.deadline && protocol.has(Rule::Deadline) => vec![Step::TooLate],
            At::Seen(_) => vec![Step::Send],
            At::Sent(_) => vec![],
            At::Appended(_) => vec![Step::Acknowledge],
        };
        if self.wire.is_some() {
            steps.push(Step::Append);
        }
        if self.at != At::Create {
            steps.push(Step::Crash);
        }
        steps
    }

    pub fn tick(&mut self, oldest: u8, protocol: &Protocol) {
        age(&mut self.wire, oldest);
        if let Made::Wrote(age) = &mut self.made {
            *age = (*age + 1).min(oldest);
        }
        if let At::Renew(age) | At::Seen(age) | At::Sent(age) | At::Appended(age) = &mut self.at {
            *age = (*age + 1).min(oldest);
        }
        if protocol.times.network.is_some_and(|most| self.wire.is_some_and(|age| age > most)) {
            self.wire = None;
            // It is told that the record was not delivered, and begins anew.
            if matches!(self.at, At::Sent(_)) {
                self.begin();
            }
        }
    }

    fn begin(&mut self) {
        *self = Self { wire: self.wire, ..Self::default() };
    }
}

pub fn act(world: &mut World, number: usize, step: Step, protocol: &Protocol) {
    let mut publisher = world.publishers[number];
    match step {
        Step::Create | Step::CreateUnanswered => {
            let is_created = world.body.is_none();
            if is_created {
                world.write();
            }
            publisher.made = if is_created && step == Step::Create { Made::Wrote(0) } else { Made::Nothing };
            publisher.at = At::Look;
        }
        Step::Look => look(world, &mut publisher, protocol),
        Step::Renew | Step::RenewUnanswered => {
            let At::Renew(age) = publisher.at else { return };
            world.write();
            let is_young = age <= protocol.times.boundary && step == Step::Renew;
            publisher.made = if is_young { Made::Wrote(0) } else { Made::Renewed };
            publisher.at = if protocol.has(Rule::Settle) || step == Step::RenewUnanswered { At::Look } else { At::Seen(0) };
        }
        Step::Send => {
            let At::Seen(age) = publisher.at else { return };
            publisher.wire = Some(age);
            publisher.at = At::Sent(age);
        }
        Step::TooLate => publisher.begin(),
        Step::Append => {
            world.youngest = Some(0);
            publisher.wire = None;
            if let At::Sent(age) = publisher.at {
                publisher.at = At::Appended(age);
            }
        }
        Step::Acknowledge => {
            let At::Appended(age) = publisher.at else { return };
            if age > protocol.times.deadline && protocol.has(Rule::LookAgain) {
                publisher = Publisher { is_again: true, ..Publisher::default() };
            } else {
                done(world, &mut publisher);
            }
        }
        Step::Crash => publisher.begin(),
    }
    world.publishers[number] = publisher;
}

/// Looks with HEAD, which nothing else stands for.
fn look(world: &mut World, publisher: &mut Publisher, protocol: &Protocol) {
    let times = &protocol.times;
    let Some(age) = world.body else {
        publisher.at = At::Create;
        publisher.made = Made::Nothing;
        return;
    };
    let settles = match publisher.made {
        // So lately that no sweep can have found the body old since.
        Made::Wrote(age) if age <= times.half => false,
        Made::Renewed => protocol.has(Rule::Settle),
        _ => protocol.has(Rule::Settle) && protocol.has(Rule::SettleForOthers),
    };
    if age > times.half && protocol.has(Rule::Renewal) {
        publisher.at = At::Renew(age);
    } else if age < times.settle && settles {
        // It waits, and looks again.
    } else if publisher.is_again {
        done(world, publisher);
    } else {
        publisher.at = At::Seen(0);
    }
}

/// Ends the work on a record, and begins with the next one of the same bytes.
fn done(world: &mut World, publisher: &mut Publisher) {
    world.youngest_checked = world.youngest;
    publisher.begin();
}
