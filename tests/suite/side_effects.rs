//! Side effects outside any transaction: intended, done, recorded; looked for before they are done again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use geoclaim_common::{Fault, FaultKind};
use geoclaim_consumer::{
    lease::{Intents, SqliteLeases},
    sink::{
        Change, Effect, Sink,
        side_effect::{Seen, SideEffect, SideEffectSink, sweep},
    },
};
use geoclaim_tests::contract::{change, one_of_many};

/// What the other side has been asked for, and how it answers.
#[derive(Debug, Default)]
struct Other {
    done: Mutex<BTreeMap<String, u32>>,
    /// What becomes of the next calls, the last one first.
    answers: Mutex<Vec<Answer>>,
    tells: bool,
    /// How long the worker stands still once it has done it.
    stands_still: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    /// It is done, and the answer is lost.
    Lost,
    /// It is not done.
    Unavailable,
    /// It will never be done.
    Refused,
}

#[async_trait]
impl SideEffect for Other {
    fn key(&self, change: &Change) -> Option<String> {
        (change.feature_id != "nothing").then(|| format!("order {} {}", change.feature_id, change.version.unwrap_or(0)))
    }

    async fn perform(&self, key: &str, _: &Change) -> Result<String, Fault> {
        let answer = self.answers.lock().unwrap().pop();
        if !matches!(answer, Some(Answer::Unavailable | Answer::Refused)) {
            *self.done.lock().unwrap().entry(key.to_owned()).or_default() += 1;
        }
        // The whole worker: nothing is renewed meanwhile.
        std::thread::sleep(self.stands_still);
        match answer {
            None => Ok("number 1".to_owned()),
            Some(Answer::Refused) => Err(Fault::new(FaultKind::Rejected, "the office is closed for good")),
            Some(Answer::Lost | Answer::Unavailable) => Err(Fault::unavailable("no answer")),
        }
    }

    async fn look(&self, key: &str) -> Result<Seen, Fault> {
        let is_done = self.done.lock().unwrap().contains_key(key);
        Ok(match (self.tells, is_done) {
            (false, _) => Seen::Unknown,
            (true, true) => Seen::Done("number 1".to_owned()),
            (true, false) => Seen::NotDone,
        })
    }
}

struct Desk {
    other: Arc<Other>,
    intents: Arc<dyn Intents>,
    sink: Arc<dyn Sink>,
    _folder: tempfile::TempDir,
}

fn desk(answers: &[Answer], tells: bool) -> Desk {
    let folder = tempfile::tempdir().unwrap();
    let other = Arc::new(Other { answers: Mutex::new(answers.to_vec()), tells, ..Other::default() });
    let intents: Arc<dyn Intents> =
        Arc::new(SqliteLeases::open(folder.path().join("intents.db"), "c", Duration::from_secs(2)).unwrap());
    let sink = Arc::new(SideEffectSink::new(Arc::clone(&other) as _, Arc::clone(&intents)));
    Desk { other, intents, sink, _folder: folder }
}

/// Applies until the sink takes the batch, as a consumer does. Returns how often it did not.
async fn apply(sink: &Arc<dyn Sink>, batch: Vec<Change>) -> (Vec<Effect>, u32) {
    let batch = Arc::new(batch);
    let mut failures = 0;
    loop {
        match sink.apply(Arc::clone(&batch)).await {
            Ok(effects) => return (effects, failures),
            Err(fault) => assert_eq!(fault.kind, FaultKind::Unavailable, "{fault}"),
        }
        failures += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_whose_answer_is_lost_is_found_and_not_done_again() {
    use Effect::{Applied, Duplicate, NotHeld};
    let desk = desk(&[Answer::Unavailable, Answer::Lost], true);
    let batch = || {
        vec![change("f", "e1", None, 1), change("nothing", "e2", None, 1), change("g", "e3", None, 1), change("f", "e4", None, 1)]
    };
    assert_eq!(apply(&desk.sink, batch()).await, (vec![Applied, NotHeld, Applied, Duplicate], 2));
    assert_eq!(
        apply(&desk.sink, batch()).await,
        (vec![Duplicate, NotHeld, Duplicate, Duplicate], 0),
        "by its key, not by its event"
    );
    assert_eq!(desk.other.done.lock().unwrap().values().collect::<Vec<_>>(), [&1, &1]);
    assert!(desk.intents.hanging(Duration::ZERO, 10).await.unwrap().is_empty());
    one_of_many(&[desk.sink], || change("many", "e", None, 1)).await;
    assert_eq!(desk.other.done.lock().unwrap()["order many 0"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_the_last_word_and_recorded() {
    let desk = desk(&[Answer::Refused], true);
    let (effects, _) = apply(&desk.sink, vec![change("f", "e1", None, 1), change("g", "e2", None, 1)]).await;
    assert!(
        matches!(&effects[0], Effect::Rejected(why) if why.contains("closed for good")) && effects[1] == Effect::Applied,
        "{effects:?}"
    );
    assert_eq!(apply(&desk.sink, vec![change("f", "e1", None, 1)]).await, (vec![Effect::Duplicate], 0));
}

/// Where nobody can tell, nothing is done twice: the intent hangs, the sweep shows it, and it goes on once it can be told.
#[tokio::test(flavor = "multi_thread")]
async fn an_intent_that_hangs_is_swept_and_never_guessed() {
    let silent = desk(&[Answer::Lost], false);
    let batch = Arc::new(vec![change("f", "e1", None, 1)]);
    for _ in 0..2 {
        assert_eq!(silent.sink.apply(Arc::clone(&batch)).await.unwrap_err().kind, FaultKind::Unavailable);
    }
    let swept = sweep(&*silent.other, &silent.intents, Duration::ZERO, 10).await.unwrap();
    assert_eq!((swept.recorded.len(), swept.undone.len(), swept.unknown.len()), (0, 0, 1), "{swept:?}");
    assert_eq!(swept.unknown[0].about, "order f 0");
    let telling = Other { done: Mutex::new(silent.other.done.lock().unwrap().clone()), tells: true, ..Other::default() };
    let swept = sweep(&telling, &silent.intents, Duration::ZERO, 10).await.unwrap();
    assert_eq!((swept.recorded.len(), swept.undone.len(), swept.unknown.len()), (1, 0, 0), "{swept:?}");
    assert_eq!(silent.sink.apply(batch).await.unwrap(), [Effect::Duplicate]);
    assert_eq!(silent.other.done.lock().unwrap().values().collect::<Vec<_>>(), [&1]);
}

/// A worker that stands still past its lease, after it has done it: another finds that it is done, and the first learns so.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stood_still_finds_its_effect_recorded_by_another() {
    let folder = tempfile::tempdir().unwrap();
    let lasts = Duration::from_millis(300);
    let other = Arc::new(Other { tells: true, stands_still: 3 * lasts, ..Other::default() });
    let sink = || {
        let intents = SqliteLeases::open(folder.path().join("intents.db"), "c", lasts).unwrap();
        Arc::new(SideEffectSink::new(Arc::clone(&other) as _, Arc::new(intents)))
    };
    let (first, second) = (sink(), sink());
    let batch = || Arc::new(vec![change("f", "e1", None, 1)]);
    // On a runtime of its own, for it stands still with all that it has.
    let still = std::thread::spawn(move || tokio::runtime::Runtime::new().unwrap().block_on(first.apply(batch())).unwrap());
    while other.done.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let ended = [second.apply(batch()).await.unwrap(), still.join().unwrap()].concat();
    assert_eq!(ended, [Effect::Applied, Effect::Duplicate]);
    assert_eq!(other.done.lock().unwrap().values().collect::<Vec<_>>(), [&1]);
}
