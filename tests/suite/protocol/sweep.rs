//! The sweep: list, read references, plan; a grace later list, read references, look, delete.

use super::model::{Protocol, Rule, Times, World, age};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sweep {
    at: At,
    /// What lies in the store: how long ago the body was found without a reference.
    planned: Option<u8>,
    /// Whether the body is the one that was planned.
    is_unchanged: bool,
    /// A request to delete that is on its way, and how long ago the body was seen.
    wire: Option<u8>,
    pub has_deleted: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum At {
    #[default]
    Idle,
    /// It has listed a body that is old enough.
    Listed,
    /// No reference was found, for the second time where that is the rule.
    Read,
    /// It saw the body so long ago, and deletes it.
    Seen(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    List,
    ReadReferences,
    Head,
    SendDelete,
    /// It saw the body too long ago.
    TooLate,
    /// The store deletes.
    Delete,
    /// The sweep is killed. Its plan and what is on its way remain.
    Crash,
}

impl Sweep {
    pub fn steps(&self, protocol: &Protocol) -> Vec<Step> {
        let mut steps = match self.at {
            At::Idle => vec![Step::List],
            At::Listed => vec![Step::ReadReferences],
            At::Read => vec![Step::Head],
            At::Seen(age) if age > protocol.times.delete => vec![Step::TooLate],
            At::Seen(_) => vec![Step::SendDelete],
        };
        if self.wire.is_some() {
            steps.push(Step::Delete);
        }
        if self.at != At::Idle {
            steps.push(Step::Crash);
        }
        steps
    }

    pub fn tick(&mut self, times: &Times) {
        age(&mut self.planned, times.grace);
        age(&mut self.wire, times.delete + 1);
        self.wire = self.wire.filter(|age| *age <= times.delete);
        if let At::Seen(age) = &mut self.at {
            *age = (*age + 1).min(times.delete + 1);
        }
    }

    pub fn body_changed(&mut self) {
        self.is_unchanged = false;
    }

    fn forget(&mut self) {
        self.at = At::Idle;
        self.planned = None;
        self.is_unchanged = false;
    }
}

pub fn act(world: &mut World, step: Step, protocol: &Protocol) {
    let mut sweep = world.sweep;
    match step {
        Step::List => match world.body {
            Some(age) if age > protocol.times.boundary => sweep.at = At::Listed,
            _ => sweep.forget(),
        },
        Step::ReadReferences => read_references(world, &mut sweep, protocol),
        Step::Head => {
            let is_old = world.body.is_some_and(|age| age > protocol.times.boundary) && sweep.is_unchanged;
            match is_old || !protocol.has(Rule::HeadBeforeDelete) {
                // A request of before, of which nothing is known, must be dead.
                true if sweep.wire.is_some() => {}
                true => sweep.at = At::Seen(0),
                false => sweep.forget(),
            }
        }
        Step::SendDelete => {
            let At::Seen(age) = sweep.at else { return };
            sweep.wire = Some(age);
            sweep.at = At::Idle;
        }
        Step::TooLate => sweep.at = At::Idle,
        Step::Delete => {
            world.body = None;
            sweep.is_unchanged = false;
            sweep.has_deleted = true;
            if protocol.has(Rule::DeleteOnce) {
                sweep.wire = None;
            }
        }
        Step::Crash => sweep.at = At::Idle,
    }
    world.sweep = sweep;
}

fn read_references(world: &World, sweep: &mut Sweep, protocol: &Protocol) {
    let is_planned = sweep.planned.is_some() && sweep.is_unchanged;
    if world.youngest.is_some() {
        sweep.forget();
    } else if !protocol.has(Rule::SecondCycle) || (is_planned && sweep.planned == Some(protocol.times.grace)) {
        sweep.at = At::Read;
        sweep.is_unchanged |= !protocol.has(Rule::SecondCycle);
    } else if is_planned {
        sweep.at = At::Idle;
    } else {
        sweep.at = At::Idle;
        sweep.planned = Some(0);
        sweep.is_unchanged = world.body.is_some_and(|age| age > protocol.times.boundary);
    }
}
