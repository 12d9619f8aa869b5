//! The areas by their boxes.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc};

use geo::Polygon;
use geoclaim_common::{Bbox, cover::Cover};

use super::{
    Area,
    area::{bounds_of_rings, box_polygon},
    coarse::Coarse,
    shape::{Outline, Shape},
    tree::BoxTree,
};

/// A set of areas that answers which of them something may meet. Immutable once built.
///
/// A box is held without its polygon, so that a million of them fit where a service has some hundred megabytes.
#[derive(Debug)]
pub struct AreaIndex {
    ids: Vec<Arc<str>>,
    boxes: BoxTree<Slot>,
    coarse: Coarse,
    /// The area of each shape, by the shape's number.
    areas: Vec<u32>,
    /// The polygons that are no boxes.
    outlines: Vec<Outline>,
}

/// Which shape, and where the rest of it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    number: u32,
    /// The place of its outline, counted from one.
    outline: Option<NonZeroU32>,
}

impl AreaIndex {
    /// Builds the index of at most four billion polygons.
    pub fn new(areas: Vec<Area>) -> Self {
        let (mut ids, mut outlines) = (Vec::with_capacity(areas.len()), Vec::new());
        let (mut places, mut entries) = (Vec::with_capacity(areas.len()), Vec::with_capacity(areas.len()));
        for Area { id, polygons } in areas {
            for polygon in polygons {
                let bounds @ [west, _, east, _] = bounds_of_rings(&polygon);
                if west <= east {
                    let outline = keep(&mut outlines, polygon);
                    entries.push((bounds, Slot { number: places.len() as u32, outline }));
                    places.push(ids.len() as u32);
                }
            }
            ids.push(id);
        }
        let coarse = Coarse::new(entries.iter().map(|(bounds, _)| *bounds));
        Self { ids, boxes: BoxTree::new(entries.into_iter()), coarse, areas: places, outlines }
    }

    /// Returns the ids of the areas in the order in which they were given. An area's *place* is its place among them.
    pub fn ids(&self) -> &[Arc<str>] {
        &self.ids
    }

    /// Tells whether the box meets the box of any area. Never says no when the geometry in the box meets an area.
    pub fn meets(&self, bbox: &Bbox) -> bool {
        let looked_up = |planar| self.shapes_near(planar).next().is_some();
        bbox.planar().any(|planar| self.coarse.meets(planar).unwrap_or_else(|| looked_up(planar)))
    }

    /// Tells whether a cover meets any area. Never says no when the geometry in the cover meets an area; says yes in vain
    /// only where the cover is larger than the geometry.
    pub fn meets_cover(&self, cover: &Cover) -> bool {
        self.met_by_cover(cover).next().is_some()
    }

    /// Returns the places of the areas whose boxes a planar box meets.
    pub fn near(&self, planar: [f64; 4]) -> BTreeSet<usize> {
        self.shapes_near(planar).map(|shape| self.area_of(shape.number)).collect()
    }

    /// Returns the places of the areas that a cover meets.
    pub fn near_cover(&self, cover: &Cover) -> BTreeSet<usize> {
        self.met_by_cover(cover).map(|shape| self.area_of(shape.number)).collect()
    }

    /// Returns the polygons of an area, as its [`Area`] had them; `None` when there is no such area. It looks at every
    /// shape: ask once for each area.
    pub fn polygons(&self, id: &str) -> Option<Vec<Polygon>> {
        let place = self.ids.iter().position(|known| &**known == id)? as u32;
        let shapes = self.areas.partition_point(|area| *area < place)..self.areas.partition_point(|area| *area <= place);
        let mut found: Vec<([f64; 4], Slot)> = self
            .boxes
            .iter()
            .filter(|(_, slot)| shapes.contains(&(slot.number as usize)))
            .map(|(bounds, slot)| (bounds, *slot))
            .collect();
        found.sort_unstable_by_key(|(_, slot)| slot.number);
        let polygon = |(bounds, slot): ([f64; 4], Slot)| match slot.outline {
            Some(place) => self.outlines[place.get() as usize - 1].polygon().clone(),
            None => box_polygon(bounds),
        };
        Some(found.into_iter().map(polygon).collect())
    }

    fn met_by_cover<'a>(&'a self, cover: &'a Cover) -> impl Iterator<Item = Shape<'a>> + 'a {
        let near =
            cover.bbox().planar().filter(|planar| self.coarse.may_meet(*planar)).flat_map(|planar| self.shapes_near(planar));
        near.filter(|shape| cover.any_within(shape.bounds, |piece| shape.meets_box(piece)))
    }

    /// Returns how many shapes there are.
    pub(super) fn shape_count(&self) -> usize {
        self.areas.len()
    }

    /// Returns the place of the area of a shape.
    pub(super) fn area_of(&self, shape: u32) -> usize {
        self.areas[shape as usize] as usize
    }

    /// Returns the shapes whose boxes a planar box meets.
    pub(super) fn shapes_near(&self, planar: [f64; 4]) -> impl Iterator<Item = Shape<'_>> {
        self.boxes.near(planar).map(|(bounds, slot)| {
            let outline = slot.outline.map(|place| &self.outlines[place.get() as usize - 1]);
            Shape { number: slot.number, bounds, outline }
        })
    }
}

/// Keeps a polygon unless it is a box; returns its place, counted from one.
fn keep(outlines: &mut Vec<Outline>, polygon: Polygon) -> Option<NonZeroU32> {
    outlines.push(Outline::new(polygon)?);
    NonZeroU32::new(outlines.len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bbox(west: f64, south: f64, east: f64, north: f64) -> Bbox {
        Bbox::new(west, south, east, north).unwrap()
    }

    #[test]
    fn a_wrapped_area_is_met_on_both_sides_and_reported_once() {
        let index = AreaIndex::new(vec![
            Area::from_bbox("fiji", &bbox(170.0, -20.0, -170.0, -15.0)),
            Area::from_bbox("null", &bbox(-1.0, -1.0, 1.0, 1.0)),
        ]);
        assert!(index.meets(&bbox(175.0, -18.0, 176.0, -17.0)));
        assert!(index.meets(&bbox(-175.0, -18.0, -174.0, -17.0)));
        assert!(!index.meets(&bbox(-169.0, -18.0, 169.0, -17.0)));
        let cover = Cover::new(bbox(179.0, -18.0, -179.0, -17.0), None).unwrap();
        assert_eq!(index.near_cover(&cover), [0].into());
        assert!(index.meets(&Bbox::WORLD));
    }

    #[test]
    fn a_box_is_held_without_its_polygon() {
        assert_eq!(size_of::<Slot>(), 8);
        let triangle = br#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}"#;
        let index = AreaIndex::new(vec![
            Area::from_bbox("box", &bbox(5.0, 5.0, 6.0, 6.0)),
            Area::from_geojson("triangle", triangle).unwrap(),
        ]);
        assert_eq!((index.shape_count(), index.outlines.len()), (2, 1));
        let corner = |west, south| Cover::new(bbox(west, south, west + 0.1, south + 0.1), None).unwrap();
        assert_eq!(index.near_cover(&corner(5.1, 5.8)), [0].into());
        assert_eq!(index.near_cover(&corner(0.8, 0.1)), [1].into());
        assert!(!index.meets_cover(&corner(0.1, 0.8)), "in the triangle's box only");
        let given = [Area::from_bbox("box", &bbox(5.0, 5.0, 6.0, 6.0)), Area::from_geojson("triangle", triangle).unwrap()];
        assert!(given.iter().all(|area| index.polygons(&area.id).as_ref() == Some(&area.polygons)));
        assert_eq!(index.polygons("other"), None);
    }
}
