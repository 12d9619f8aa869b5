//! URLs that are signed at the moment of asking.

use std::process::Command;

use geoclaim_common::Body;
use geoclaim_tests::{
    binary,
    components::{
        Azurite,
        azurite::{ACCOUNT, KEY},
    },
    sample::{large, lines},
};
use object_store::ObjectStoreExt as _;

use crate::support::{Real, azure};

#[tokio::test(flavor = "multi_thread")]
async fn a_url_of_s3_is_signed_when_it_is_asked_for_and_anyone_can_fetch_it() {
    let Some(real) = Real::get() else { return };
    let place = real.place("urls", 1);
    let feature = large("a");
    let run = binary::run(&["publish", "--run", "r"], &place.env, lines(std::slice::from_ref(&feature)).as_bytes());
    assert_eq!(run.code(), 0, "{}", run.stderr);
    let claim = Body::seal(feature.clone().into()).claim();
    for name in [claim.key().to_string(), claim.digest.to_string()] {
        let run = binary::run(&["url", &name, "--expires", "5m"], &place.env, b"");
        assert_eq!(run.code(), 0, "{}", run.stderr);
        let url = run.stdout.trim();
        assert!(url.contains("X-Amz-Signature=") && url.contains("X-Amz-Expires=300"), "{url}");
        let path = url.strip_prefix(&real.store.endpoint()).unwrap();
        assert_eq!(real.store.ask("GET", path, b"").unwrap(), (200, feature.clone()));
    }
    let run = binary::run(&["inspect", "--resolve", "--urls"], &place.env, b"");
    assert!(run.stdout.contains("verified") && run.stdout.contains("X-Amz-Signature="), "{}", run.stdout);
    let absent = Body::seal("absent".into()).claim().digest.to_string();
    let run = binary::run(&["url", &absent], &place.env, b"");
    assert!(run.code() == 1 && run.stderr.contains("is not there"), "{}", run.stderr);
    assert_eq!(binary::run(&["url", "geom/../etc/passwd"], &place.env, b"").code(), 2);
    let folder = tempfile::tempdir().unwrap();
    let run = binary::run(&["url", &absent, "--store", folder.path().to_str().unwrap()], &[], b"");
    assert!(run.code() == 2 && run.stderr.contains("read the file"), "{}", run.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_of_azure_is_signed_and_anyone_can_fetch_it() {
    let (Some(store), Ok(azurite)) = (azure("urls"), Azurite::shared()) else { return };
    let body = Body::seal(large("a").into());
    store.put(&body.claim().key(), body.bytes().clone().into()).await.unwrap();
    let env = [
        ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT),
        ("AZURE_STORAGE_ACCOUNT_KEY", KEY),
        ("AZURE_STORAGE_ENDPOINT", &azurite.endpoint()),
        ("AZURE_ALLOW_HTTP", "true"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let url = format!("az://urls-{}", std::process::id());
    let run = binary::run(&["url", &body.claim().digest.to_string(), "--store", &url], &env, b"");
    assert_eq!(run.code(), 0, "{}", run.stderr);
    assert!(run.stdout.contains("sig=") && !run.stdout.contains(KEY), "{}", run.stdout);
    let path = run.stdout.trim().strip_prefix(azurite.endpoint().strip_suffix(&format!("/{ACCOUNT}")).unwrap()).unwrap();
    assert_eq!(azurite.get(path).unwrap(), (200, large("a")));
    assert_ne!(azurite.get(&path.replace("sig=", "sig=A")).unwrap().0, 200);
}

/// No emulator checks Google's signatures, so only the form is looked at, and nobody is asked.
#[test]
fn a_url_of_google_is_signed_with_the_key_of_the_service_account() {
    let key =
        Command::new("openssl").args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]).output().unwrap();
    let key = String::from_utf8(key.stdout).unwrap();
    let account = serde_json::json!({"private_key": key, "private_key_id": "1", "client_email": "someone@example.org"});
    let env = [("GOOGLE_SERVICE_ACCOUNT_KEY".to_owned(), account.to_string())];
    let name = Body::seal(large("a").into()).claim().key().to_string();
    let run = binary::run(&["url", &name, "--unchecked", "--store", "gs://bucket/prefix"], &env, b"");
    assert_eq!(run.code(), 0, "{}", run.stderr);
    assert!(run.stdout.contains("X-Goog-Signature=") && run.stdout.contains(&format!("prefix/{name}?")), "{}", run.stdout);
}
