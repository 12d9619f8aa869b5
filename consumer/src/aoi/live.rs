//! The areas that are in force, which can be exchanged while a consumer runs.

use std::{
    collections::BTreeSet,
    sync::{Arc, PoisonError, RwLock},
};

use geoclaim_common::{Bbox, cover::Cover};

use super::{Area, AreaIndex};

/// All areas of interest and, where only some of them are wanted in this run, those. Immutable.
#[derive(Debug)]
pub struct AreaSet {
    all: AreaIndex,
    chosen: Option<Box<Chosen>>,
}

/// The areas that are wanted in this run.
#[derive(Debug)]
struct Chosen {
    ids: BTreeSet<Arc<str>>,
    index: AreaIndex,
}

/// Where a place lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It may meet an area that is wanted.
    Wanted,
    /// It meets none that is wanted, but may meet another.
    Elsewhere,
    /// It meets no area at all.
    Nowhere,
}

impl AreaSet {
    /// Makes a set of areas that are all wanted.
    pub fn new(areas: Vec<Area>) -> Self {
        Self { all: AreaIndex::new(areas), chosen: None }
    }

    /// Makes a set of areas of which only those with these ids are wanted.
    ///
    /// # Errors
    /// The ids that no area has.
    pub fn choose(areas: Vec<Area>, ids: &[String]) -> Result<Self, Vec<String>> {
        let present: BTreeSet<&str> = areas.iter().map(|area| &*area.id).collect();
        let missing: Vec<String> = ids.iter().filter(|id| !present.contains(id.as_str())).cloned().collect();
        if !missing.is_empty() {
            return Err(missing);
        }
        let ids: BTreeSet<Arc<str>> = ids.iter().map(|id| Arc::from(id.as_str())).collect();
        let chosen = areas.iter().filter(|area| ids.contains(&area.id)).cloned().collect();
        Ok(Self { chosen: Some(Box::new(Chosen { ids, index: AreaIndex::new(chosen) })), all: AreaIndex::new(areas) })
    }

    /// Returns all areas.
    pub fn all(&self) -> &AreaIndex {
        &self.all
    }

    /// Tells where a box lies. Never says less than the geometry in the box.
    pub fn reach(&self, bbox: &Bbox) -> Reach {
        self.reach_of(|index| index.meets(bbox))
    }

    /// Tells where a cover lies. Never says less than the geometry in the cover.
    pub fn reach_of_cover(&self, cover: &Cover) -> Reach {
        self.reach_of(|index| index.meets_cover(cover))
    }

    /// Tells whether one of these areas, which a geometry meets, is wanted.
    pub fn wants(&self, met: &[Arc<str>]) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| met.iter().any(|id| chosen.ids.contains(id)))
    }

    fn reach_of(&self, meets: impl Fn(&AreaIndex) -> bool) -> Reach {
        match &self.chosen {
            None if meets(&self.all) => Reach::Wanted,
            Some(chosen) if meets(&chosen.index) => Reach::Wanted,
            Some(_) if meets(&self.all) => Reach::Elsewhere,
            None | Some(_) => Reach::Nowhere,
        }
    }
}

/// A handle on the areas in force. Whoever takes them has them as a whole: an exchange is seen at once or not at all.
#[derive(Debug)]
pub struct LiveAreas {
    current: RwLock<Arc<AreaSet>>,
}

impl LiveAreas {
    /// Makes a handle.
    pub fn new(areas: AreaSet) -> Self {
        Self { current: RwLock::new(Arc::new(areas)) }
    }

    /// Returns the areas in force now.
    pub fn now(&self) -> Arc<AreaSet> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts other areas in force. Records that are judged already stay judged; a feature that is held and meets none of
    /// the new areas leaves by its next event.
    pub fn replace(&self, areas: AreaSet) {
        let areas = Arc::new(areas);
        let old = std::mem::replace(&mut *self.current.write().unwrap_or_else(PoisonError::into_inner), areas);
        // Freeing a million areas takes a while; not under the lock.
        drop(old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(id: &str, west: f64) -> Area {
        Area::from_bbox(id, &Bbox::new(west, 0.0, west + 1.0, 1.0).unwrap())
    }

    #[test]
    fn of_chosen_areas_the_others_are_elsewhere() {
        let areas = || vec![area("a", 0.0), area("b", 10.0)];
        let set = AreaSet::choose(areas(), &["b".to_owned()]).unwrap();
        let reach = |west| set.reach(&Bbox::new(west, 0.5, west, 0.5).unwrap());
        assert_eq!([reach(0.5), reach(10.5), reach(5.0)], [Reach::Elsewhere, Reach::Wanted, Reach::Nowhere]);
        assert!(set.wants(&["a".into(), "b".into()]) && !set.wants(&["a".into()]));
        assert_eq!(AreaSet::choose(areas(), &["a".to_owned(), "x".to_owned()]).unwrap_err(), ["x"]);
    }

    #[test]
    fn what_was_taken_stays_as_it_was() {
        let live = LiveAreas::new(AreaSet::new(vec![area("a", 0.0)]));
        let before = live.now();
        live.replace(AreaSet::new(vec![area("b", 0.0)]));
        assert_eq!((&*before.all().ids()[0], &*live.now().all().ids()[0]), ("a", "b"));
    }
}
