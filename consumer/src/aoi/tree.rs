//! Things by their planar boxes. The only module that names `rstar`; its `AABB` and `Envelope` are boxes, not ours.

use rstar::{AABB, RTree, primitives::GeomWithData, primitives::Rectangle};

/// Things by their planar boxes, `[west, south, east, north]`. Immutable once built.
#[derive(Debug)]
pub(super) struct BoxTree<T> {
    tree: RTree<GeomWithData<Rectangle<[f64; 2]>, T>>,
}

impl<T> BoxTree<T> {
    /// Builds it of things and their boxes, whose sides are in order.
    pub(super) fn new(entries: impl Iterator<Item = ([f64; 4], T)>) -> Self {
        let entries = entries.map(|([west, south, east, north], thing)| {
            GeomWithData::new(Rectangle::from_corners([west, south], [east, north]), thing)
        });
        Self { tree: RTree::bulk_load(entries.collect()) }
    }

    /// Returns the things whose boxes a box meets, touching included, and their boxes. The sides of the box must be in
    /// order, for `rstar` would silently put them in order, and so turn a wrapped box into the rest of the world.
    pub(super) fn near(&self, [west, south, east, north]: [f64; 4]) -> impl Iterator<Item = ([f64; 4], &T)> {
        debug_assert!(west <= east && south <= north);
        let near = self.tree.locate_in_envelope_intersecting(AABB::from_corners([west, south], [east, north]));
        near.map(|entry| (sides(entry.geom().lower(), entry.geom().upper()), &entry.data))
    }

    /// Returns all things and their boxes, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = ([f64; 4], &T)> {
        self.tree.iter().map(|entry| (sides(entry.geom().lower(), entry.geom().upper()), &entry.data))
    }

    /// Returns the box of all boxes; of none, one that nothing meets.
    pub(super) fn bounds(&self) -> [f64; 4] {
        let all = self.tree.root().envelope();
        sides(all.lower(), all.upper())
    }
}

fn sides([west, south]: [f64; 2], [east, north]: [f64; 2]) -> [f64; 4] {
    [west, south, east, north]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_touches_is_near() {
        let tree = BoxTree::new([([0.0, 0.0, 1.0, 1.0], 'a'), ([2.0, 0.0, 3.0, 1.0], 'b')].into_iter());
        let near = |planar| tree.near(planar).map(|(_, thing)| *thing).collect::<String>();
        assert_eq!((near([1.0, 1.0, 1.5, 1.5]), near([1.5, 0.0, 2.0, 0.0])), ("a".to_owned(), "b".to_owned()));
        assert_eq!(tree.bounds(), [0.0, 0.0, 3.0, 1.0]);
        let none = BoxTree::<char>::new(std::iter::empty()).bounds();
        assert!(none[0] > none[2]);
    }
}
