//! Compressed bodies: what is stored is shorter, what is applied is the same, and what is stored wrong is set aside.

use std::{io::Write as _, sync::Arc};

use futures::TryStreamExt as _;
use geoclaim_common::{
    Body, Digest, Encoding, Envelope, FaultKind, Spool,
    encoding::LEVEL,
    envelope::Content,
    fetch::{Keeping, fetch},
    key, limits,
    store::Store,
    stream::{OutgoingRecord, memory::MemorySink},
};
use geoclaim_producer::{PublishSettings, put::Putter};
use geoclaim_tests::{
    binary,
    sample::{large, lines, point},
};
use object_store::{ObjectStore as _, ObjectStoreExt as _};

use crate::support::{Bench, Place, Real, feature_ids, memory, publish_to, run_named};

const AREA: &str = "[[0,0,40,40]]";

async fn compressed(store: &Store, level: i32, text: String) -> Vec<OutgoingRecord> {
    let records = MemorySink::default();
    let settings = PublishSettings { zstd_level: Some(level), ..run_named("encoded") };
    publish_to(Arc::clone(store), records.clone(), settings, text).await;
    records.records()
}

fn claim(record: &OutgoingRecord) -> geoclaim_common::ClaimCheck {
    match Envelope::decode(record.value.as_ref().unwrap()).unwrap().content {
        Content::Claim(claim) => claim,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_body_has_the_digest_of_its_own_bytes_and_a_key_of_its_own() {
    let store = memory();
    let records = compressed(&store, LEVEL, lines(&[large("a"), point("b", 1.0, 1.0)])).await;
    let text = large("a");
    let claim = claim(&records[0]);
    assert_eq!((claim.digest, claim.length), (Digest::of(text.as_bytes()), text.len() as u64));
    assert_eq!(claim.key(), key::encoded(&claim.digest, Encoding::Zstd));
    let stored = store.get(&claim.key()).await.unwrap().bytes().await.unwrap();
    let encoded = claim.encoded.unwrap();
    assert_eq!((encoded.digest, encoded.length), (Digest::of(&stored), stored.len() as u64));
    assert!(stored.len() * 5 < text.len(), "{} of {}", stored.len(), text.len());
    assert_eq!(zstd::decode_all(&stored[..]).unwrap(), text.as_bytes(), "any library reads it");
    let value = records[0].value.as_ref().unwrap();
    assert!(value.len() + 500 < limits::CLAIM_RECORD_BYTES);

    let bench = Bench::new();
    let (report, _) = bench.consume(records, AREA, Arc::clone(&store)).await;
    assert_eq!((report.applied, report.fetched, report.bytes_fetched), (2, 1, stored.len() as u64));
    assert_eq!(feature_ids(&bench.gpkg()), ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_compresses_a_body_again_in_another_way_breaks_no_envelope() {
    let store = memory();
    let mut records = compressed(&store, 1, large("a")).await;
    let before = claim(&records[0]).encoded.unwrap().length;
    records.extend(compressed(&store, 19, large("a")).await);
    assert_ne!(before, claim(&records[1]).encoded.unwrap().length);
    let objects: Vec<_> = store.list(None).try_collect().await.unwrap();
    assert_eq!(objects.len(), 1);
    for record in records {
        let got = fetch(&store, claim(&record), Keeping::Memory).await.unwrap().unwrap();
        assert_eq!(got.bytes(), large("a").as_bytes());
        fetch(&store, claim(&record), Keeping::File(&Spool::default())).await.unwrap().unwrap();
        assert!(fetch(&store, claim(&record), Keeping::Nothing).await.unwrap().is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_form_of_the_body_is_set_aside_and_a_bomb_is_stopped_at_the_declared_length() {
    let bomb = {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        // Four gigabytes in less than four hundred kilobytes.
        (0..4_096).for_each(|_| encoder.write_all(&vec![b' '; 1 << 20]).unwrap());
        encoder.finish().unwrap()
    };
    let good = claim(&compressed(&memory(), LEVEL, large("a")).await[0]);
    let encode = |text: String| zstd::encode_all(text.as_bytes(), 1).unwrap();
    for (stored, kind) in [
        (bomb[..bomb.len().min(good.length as usize)].to_vec(), FaultKind::Lengthened),
        (encode(format!("{} ", large("a"))), FaultKind::Lengthened),
        (encode(large("b")), FaultKind::Corrupt),
        (encode(large("a"))[..1_000].to_vec(), FaultKind::Truncated),
        (large("a").into_bytes(), FaultKind::Corrupt),
        (vec![0; good.length as usize + 1], FaultKind::Lengthened),
        (Vec::new(), FaultKind::Truncated),
    ] {
        let (store, length) = (memory(), stored.len());
        store.put(&good.key(), stored.into()).await.unwrap();
        let fault = fetch(&store, good, Keeping::Memory).await.unwrap_err();
        assert_eq!(fault.kind, kind, "{length}: {fault}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_get_shorter_is_stored_as_it_is() {
    // Digits by a linear congruence: each byte could not be told from the one before.
    let mut seed = 1_u64;
    let noise: String = (0..400_000)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b' ' + 3 + (seed >> 58) as u8)
        })
        .collect();
    let body = Body::seal(zstd::encode_all(noise.as_bytes(), 19).unwrap().into());
    let again = body.clone().compressed(LEVEL, &Spool::default()).unwrap();
    assert_eq!(again.claim(), body.claim());
    let store = memory();
    Putter::new(Arc::clone(&store), Default::default()).put(&again).await.unwrap();
    assert!(fetch(&store, again.claim(), Keeping::Memory).await.is_ok());
}

#[test]
fn the_command_line_compresses_and_everything_else_goes_on_as_before() {
    let Some(real) = Real::get() else { return };
    let place = real.place("encoded", 1);
    let run = |place: &Place, args: &[&str], input: &str| {
        let run = binary::run(args, &place.env, input.as_bytes());
        assert_eq!(run.code(), 0, "{args:?}: {}", run.stderr);
        run
    };
    let text = lines(&[large("a"), large("b")]);
    let plain = run(&place, &["publish", "--report", "json"], &large("a")).report();
    assert_eq!(plain["bytes_saved"], 0);
    let report = run(&place, &["publish", "--encode", "zstd:9", "--report", "json"], &text).report();
    let (stored, saved) = (report["bytes_stored"].as_u64().unwrap(), report["bytes_saved"].as_u64().unwrap());
    assert_eq!((stored + saved, stored * 5 < saved), (text.len() as u64 - 2, true), "{report}");
    let told = run(&place, &["publish", "--encode", "zstd"], &large("c"));
    assert!(told.stderr.contains("less than they are long"), "{}", told.stderr);

    let envelope = &run(&place, &["inspect", "--json", "--feature", "b"], "").lines()[0];
    assert_eq!(envelope["body_encoding"], "zstd");
    let key = envelope["body_key"].as_str().unwrap();
    assert!(key.ends_with(".json.zst"), "{key}");
    for asked in [key, envelope["body_sha256"].as_str().unwrap()] {
        assert!(run(&place, &["url", asked], "").stdout.contains(".json.zst?"));
    }
    assert_eq!(run(&place, &["inspect", "--resolve", "--report", "json"], "").report()["verified"], 4);
    let folder = tempfile::tempdir().unwrap();
    let gpkg = folder.path().join("x.gpkg");
    let sink = format!("gpkg:{}", gpkg.display());
    run(&place, &["consume", "--aoi", "0,0,40,40", "-e", "--sink", &sink], "");
    assert_eq!(feature_ids(&gpkg), ["a", "b", "c"]);

    let bad = binary::run(&["publish", "--encode", "zstd:20"], &place.env, b"");
    assert_eq!(bad.code(), 2);
    assert!(bad.stderr.contains("from 1 to 19"), "{}", bad.stderr);
}
