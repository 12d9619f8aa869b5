//! Changes to give to a sink.

use std::sync::atomic::{AtomicI64, Ordering};

use geoclaim_common::{geojson::CrsMember, stream::Position};
use geoclaim_consumer::{
    resolve::BodyBytes,
    sink::{Change, ChangeKind, State},
};

/// Makes a change to a point at a longitude and 1° north, which meets an area named `area`. Each change stands in the
/// partition after the one that was made before it.
pub fn change(feature: &str, event: &str, version: Option<i64>, x: i32) -> Change {
    let geometry = format!(r#"{{"type":"Point","coordinates":[{x},1]}}"#);
    with_body(feature, event, version, &format!(r#"{{"x":{x}}}"#), &geometry)
}

/// Makes a change to a feature with these properties and this geometry.
pub fn with_body(feature: &str, event: &str, version: Option<i64>, properties: &str, geometry: &str) -> Change {
    let id = serde_json::to_string(feature).expect("a string is JSON");
    let body = format!(r#"{{"type":"Feature","id":{id},"properties":{properties},"geometry":{geometry}}}"#);
    let (extent, outline) = geoclaim_common::extent::measure(body.as_bytes(), &Default::default()).expect("GeoJSON");
    let state =
        State { areas: vec!["area".into()], crs: CrsMember::Refuse, body: BodyBytes::Inline(body.into()), extent, outline };
    of_kind(feature, event, version, ChangeKind::Hold(Box::new(state)))
}

/// Makes a change of any kind.
pub fn of_kind(feature: &str, event: &str, version: Option<i64>, kind: ChangeKind) -> Change {
    static OFFSET: AtomicI64 = AtomicI64::new(0);
    let position = Position { partition: 0, offset: OFFSET.fetch_add(1, Ordering::Relaxed), timestamp: None };
    Change { feature_id: feature.into(), event_id: event.into(), version, occurred_at: None, position, kind }
}
