//! The world: a store with one key, a log, time, and who acts on them.

use stateright::{Model, Property};

use super::{
    CHECKED, CONSUMED, PUBLISHED, RESOLVES, SWEPT,
    publisher::{self, Publisher},
    sweep::{self, Sweep},
};

/// Ages and deadlines, in ticks.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// How long a record can be read.
    pub readable: u8,
    /// A body that is older may be swept.
    pub boundary: u8,
    /// A body that is older is renewed before it is relied on.
    pub half: u8,
    /// A publisher sends only so long after it saw the body.
    pub deadline: u8,
    /// The network delivers a record only so long after the body was seen; `None`: at any time.
    pub network: Option<u8>,
    /// A sweep deletes only so long after it saw the body.
    pub delete: u8,
    /// A body that somebody else has just written is relied on only when it is so old.
    pub settle: u8,
    /// The second cycle comes so long after the first.
    pub grace: u8,
}

/// A rule that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A body older than half the boundary is written again.
    Renewal,
    /// A body that has just been written is relied on only after a while.
    Settle,
    /// So it is when another has written it.
    SettleForOthers,
    /// A publisher that has dawdled looks again before it sends.
    Deadline,
    /// What is planned is deleted only after a second look at all references, a grace later.
    SecondCycle,
    /// The sweep looks at the body right before it deletes it.
    HeadBeforeDelete,
    /// The request to delete is sent once, not again when its answer is lost.
    DeleteOnce,
    /// After a late acknowledgement the publisher looks again.
    LookAgain,
}

impl Rule {
    pub const ALL: [Self; 8] = [
        Self::Renewal,
        Self::Settle,
        Self::SettleForOthers,
        Self::Deadline,
        Self::SecondCycle,
        Self::HeadBeforeDelete,
        Self::DeleteOnce,
        Self::LookAgain,
    ];
}

#[derive(Clone, Debug)]
pub struct Protocol {
    pub times: Times,
    left_out: Option<Rule>,
}

impl Protocol {
    /// All rules, and a network that may hold a record until the second cycle but no longer. The first cycle alone would
    /// miss a record that is held so long: half + network > boundary.
    pub fn whole() -> Self {
        let times = Times { readable: 3, boundary: 5, half: 2, deadline: 1, network: Some(4), delete: 1, settle: 2, grace: 2 };
        Self { times, left_out: None }
    }

    pub fn with_endless_network() -> Self {
        let whole = Self::whole();
        Self { times: Times { network: None, ..whole.times }, ..whole }
    }

    pub fn without(self, rule: Rule) -> Self {
        Self { left_out: Some(rule), ..self }
    }

    pub fn has(&self, rule: Rule) -> bool {
        self.left_out != Some(rule)
    }

    /// Beyond this no age matters.
    fn oldest(&self) -> u8 {
        self.times.boundary + 1
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// How long ago the body was written; `None` when it is not there.
    pub body: Option<u8>,
    /// How long ago the youngest record was appended, while it can be read. All records refer to the one body.
    pub youngest: Option<u8>,
    /// The same of records that their publishers are done with.
    pub youngest_checked: Option<u8>,
    pub publishers: [Publisher; 2],
    pub sweep: Sweep,
    pub consumer: Consumer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Consumer {
    Idle,
    /// It has read an envelope and has not fetched the body yet.
    Holds,
    /// The body was not there, and the envelope can still be read.
    Missed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Tick,
    Publish(usize, publisher::Step),
    Sweep(sweep::Step),
    Read,
    Fetch,
}

impl World {
    fn new(body: Option<u8>) -> Self {
        Self {
            body,
            youngest: None,
            youngest_checked: None,
            publishers: [Publisher::default(); 2],
            sweep: Sweep::default(),
            consumer: Consumer::Idle,
        }
    }

    /// Writes the body, anew or again.
    pub fn write(&mut self) {
        self.body = Some(0);
        self.sweep.body_changed();
    }

    fn tick(&mut self, protocol: &Protocol) {
        let oldest = protocol.oldest();
        age(&mut self.body, oldest);
        for record in [&mut self.youngest, &mut self.youngest_checked] {
            age(record, oldest);
            *record = record.filter(|age| *age <= protocol.times.readable);
        }
        for publisher in &mut self.publishers {
            publisher.tick(oldest, protocol);
        }
        self.sweep.tick(&protocol.times);
    }
}

/// Lets a tick pass.
pub fn age(age: &mut Option<u8>, oldest: u8) {
    if let Some(age) = age {
        *age = (*age + 1).min(oldest);
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        std::iter::once(None).chain((0..=self.oldest()).map(Some)).map(World::new).collect()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        for (number, publisher) in world.publishers.iter().enumerate() {
            actions.extend(publisher.steps(self).into_iter().map(|step| Action::Publish(number, step)));
        }
        actions.extend(world.sweep.steps(self).into_iter().map(Action::Sweep));
        match world.consumer {
            Consumer::Idle if world.youngest.is_some() => actions.push(Action::Read),
            Consumer::Holds => actions.push(Action::Fetch),
            _ => {}
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Tick => next.tick(self),
            Action::Publish(number, step) => publisher::act(&mut next, number, step, self),
            Action::Sweep(step) => sweep::act(&mut next, step, self),
            Action::Read => next.consumer = Consumer::Holds,
            Action::Fetch => {
                let is_missed = world.youngest.is_some() && world.body.is_none();
                next.consumer = if is_missed { Consumer::Missed } else { Consumer::Idle };
            }
        }
        next.publishers.sort_unstable();
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(CHECKED, |_, world: &World| world.youngest_checked.is_none() || world.body.is_some()),
            Property::sometimes(SWEPT, |_, world: &World| world.sweep.has_deleted),
            Property::sometimes(PUBLISHED, |_, world: &World| world.youngest.is_some()),
        ];
        if self.times.network.is_some() {
            properties.push(Property::always(RESOLVES, |_, world: &World| world.youngest.is_none() || world.body.is_some()));
            properties.push(Property::always(CONSUMED, |_, world: &World| world.consumer != Consumer::Missed));
        }
        properties
    }
}
