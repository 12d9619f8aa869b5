//! `--aoi`.

use std::path::Path;

use geoclaim_consumer::{
    aoi::{Area, AreaSet, parse_areas, parse_box},
    watch::Reload,
};

use crate::{console, failure::Failure, progress::Progress};

/// Reads the areas of interest: a file, or one box.
pub(crate) fn read(aoi: &str) -> Result<Vec<Area>, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::misuse(format!("--aoi {aoi}: {error}"));
    match parse_box(aoi) {
        Some(boxed) => Ok(vec![boxed.map_err(|error| wrong(&error))?]),
        None => {
            let text = std::fs::read(Path::new(aoi)).map_err(|error| wrong(&error))?;
            parse_areas(&text).map_err(|error| wrong(&error))
        }
    }
}

/// Reads the areas of interest, of which only those with these ids are wanted; none: all.
pub(crate) fn read_set(aoi: &str, chosen: &[String]) -> Result<AreaSet, Failure> {
    let areas = read(aoi)?;
    if chosen.is_empty() {
        return Ok(AreaSet::new(areas));
    }
    AreaSet::choose(areas, chosen)
        .map_err(|missing| Failure::misuse(format!("--areas-only: {aoi} has no area {}", missing.join(", "))))
}

/// Returns the file to watch; `None` for a box.
pub(crate) fn file(aoi: &str) -> Option<&Path> {
    parse_box(aoi).is_none().then(|| Path::new(aoi))
}

/// Says what became of a new file of areas.
pub(crate) fn tell(aoi: &str, progress: &Progress, reload: &Reload) {
    progress.say(|| match reload {
        Reload::Loaded(count) => console::note(&format!("{aoi} has changed: {count} areas are in force now")),
        Reload::Kept(why) => {
            console::error(&format!("{aoi} has changed and is no good: {why}; the areas from before stay in force"))
        }
    });
}
