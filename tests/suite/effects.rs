//! What a run has done to its sink, each effect as often as it happened, and whether that is what one clean run does.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};

use geoclaim_common::{
    Envelope,
    kafka::{KafkaSettings, read_topic},
};
use geoclaim_tests::{binary, components::Postgres};

use crate::{flow::wanted, support::Place};

/// Where effects go, with a trigger that writes down each effect, so that one that happens twice is seen.
pub enum Target {
    Postgis(Arc<Postgres>, String),
    GeoPackage(tempfile::TempDir),
    /// A topic has no trigger, and needs none: each effect is a record.
    Topic(KafkaSettings, String),
}

pub const POSTGIS_TRIGGER: &str = "CREATE TABLE effects (event_id text);
  CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN INSERT INTO effects VALUES (NEW.event_id); RETURN NEW; END$$;
  CREATE TRIGGER noted AFTER INSERT OR UPDATE ON features FOR EACH ROW EXECUTE FUNCTION note()";

pub const SQLITE_TRIGGER: &str = "CREATE TABLE effects (event_id TEXT);
  CREATE TRIGGER noted_new AFTER INSERT ON features BEGIN INSERT INTO effects VALUES (NEW.event_id); END;
  CREATE TRIGGER noted_more AFTER UPDATE ON features BEGIN INSERT INTO effects VALUES (NEW.event_id); END";

impl Target {
    pub fn url(&self) -> String {
        match self {
            Self::Postgis(postgres, database) => postgres.url(database),
            Self::GeoPackage(folder) => format!("gpkg:{}", folder.path().join("f.gpkg").display()),
            Self::Topic(_, topic) => format!("kafka:{topic}"),
        }
    }

    /// Makes the tables, by a consumer that finds nothing to do.
    pub fn prepare(&self, place: &Place) {
        let run = binary::run(&consume(&self.url(), &["--group", "nobody", "--until-end"]), &place.env, b"");
        assert_eq!(run.code(), 0, "{}", run.stderr);
        match self {
            Self::Postgis(postgres, database) => drop(postgres.query(database, POSTGIS_TRIGGER).unwrap()),
            Self::GeoPackage(_) => self.sqlite().execute_batch(SQLITE_TRIGGER).unwrap(),
            Self::Topic(..) => {}
        }
    }

    pub fn sqlite(&self) -> rusqlite::Connection {
        let Self::GeoPackage(folder) = self else { panic!("no GeoPackage") };
        let connection = rusqlite::Connection::open(folder.path().join("f.gpkg")).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection
    }

    /// Returns the event of each effect, as often as it happened.
    pub fn effects(&self) -> Vec<String> {
        match self {
            Self::Topic(settings, topic) => {
                let mut events = Vec::new();
                let visited = read_topic(settings, topic, |record| {
                    events.push(Envelope::decode(record.value.as_deref().unwrap()).unwrap().event_id);
                    ControlFlow::Continue(())
                });
                visited.unwrap();
                events
            }
            Self::Postgis(..) | Self::GeoPackage(_) => self.column("SELECT event_id FROM effects"),
        }
    }

    pub fn column(&self, sql: &str) -> Vec<String> {
        match self {
            Self::Topic(..) => Vec::new(),
            Self::Postgis(postgres, database) => {
                let text = postgres.query(database, sql).unwrap();
                text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
            }
            Self::GeoPackage(_) => {
                let connection = self.sqlite();
                let mut rows = connection.prepare(sql).unwrap();
                rows.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
            }
        }
    }

    pub fn ledger(&self) -> BTreeSet<String> {
        match self {
            Self::Topic(..) => self.effects().into_iter().collect(),
            Self::Postgis(..) | Self::GeoPackage(_) => {
                self.column("SELECT event_id FROM geoclaim_ledger WHERE consumer = 'crash'").into_iter().collect()
            }
        }
    }
}

pub fn consume<'a>(sink: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let common = ["consume", "--aoi", "0,0,10,10", "--sink", sink, "--report", "json"];
    [&common, more].concat()
}

/// Flags of the consumer that is killed: one static member, which takes its place again at once.
pub const MEMBER: [&str; 6] = ["--consumer", "crash", "-X", "group.instance.id=crash", "-X", "auto.commit.interval.ms=50"];

/// What a look at a moment found: committed offsets first, and the ledger after them.
pub struct Look(pub BTreeMap<i32, i64>, pub BTreeSet<String>);

/// Checks the end: each event that meets the area took effect once, and no committed offset was ever past its effect.
pub fn check(target: &Target, settings: &KafkaSettings, topic: &str, looks: &[Look]) {
    let events = wanted(settings, topic);
    let expected: BTreeSet<String> = events.values().filter(|(_, wanted)| *wanted).map(|(event, _)| event.clone()).collect();
    let effects = target.effects();
    let distinct: BTreeSet<String> = effects.iter().cloned().collect();
    assert_eq!(effects.len(), distinct.len(), "an effect happened twice");
    let (lost, unwanted) = (expected.difference(&distinct).count(), distinct.difference(&expected).count());
    assert_eq!((lost, unwanted), (0, 0), "events lost, and applied though they were not wanted");
    let features = target.column("SELECT feature_id FROM features ORDER BY feature_id");
    let once: BTreeSet<&String> = features.iter().collect();
    assert_eq!(features.len(), once.len(), "a feature is there twice");
    for Look(committed, ledger) in looks {
        for ((partition, offset), (event, _)) in events.iter().filter(|(_, (_, is_wanted))| *is_wanted) {
            let is_committed = committed.get(partition).is_some_and(|next| offset < next);
            assert!(!is_committed || ledger.contains(event), "{partition}/{offset} was committed before its effect");
        }
    }
    let is_sorted = looks.windows(2).all(|pair| pair[0].0.iter().all(|(partition, at)| pair[1].0.get(partition) >= Some(at)));
    assert!(is_sorted, "a committed offset went back");
}
