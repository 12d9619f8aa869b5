//! The bounding box of RFC 7946, section 5: west greater than east crosses the antimeridian.

use std::fmt;

/// A box in WGS 84 degrees. Its four numbers are finite and in range, and south is not above north; west may be
/// greater than east, and then the box runs eastward from `west` over ±180 to `east`.
///
/// ```
/// use geoclaim_common::Bbox;
/// let fiji = Bbox::new(176.0, -21.0, -178.0, -15.0)?;
/// assert!(fiji.crosses_antimeridian());
/// assert!(fiji.intersects(&Bbox::new(-179.5, -18.0, -179.0, -17.0)?));
/// assert!(!fiji.intersects(&Bbox::new(0.0, -18.0, 1.0, -17.0)?));
/// # Ok::<(), geoclaim_common::bbox::NotABbox>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bbox {
    west: f64,
    south: f64,
    east: f64,
    north: f64,
}

/// The four numbers are no box.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "[{0}, {1}, {2}, {3}] is no bbox: expected [west, south, east, north] in degrees, -180 to 180 and -90 to 90, south not above north"
)]
pub struct NotABbox(f64, f64, f64, f64);

impl Bbox {
    /// The whole world.
    pub const WORLD: Self = Self { west: -180.0, south: -90.0, east: 180.0, north: 90.0 };

    /// Makes a box.
    ///
    /// # Errors
    /// A number is NaN, infinite or out of range, or south is above north.
    pub fn new(west: f64, south: f64, east: f64, north: f64) -> Result<Self, NotABbox> {
        let longitudes = (-180.0..=180.0).contains(&west) && (-180.0..=180.0).contains(&east);
        let latitudes = south >= -90.0 && south <= north && north <= 90.0;
        (longitudes && latitudes).then_some(Self { west, south, east, north }).ok_or(NotABbox(west, south, east, north))
    }

    /// Returns `[west, south, east, north]`.
    pub const fn to_array(self) -> [f64; 4] {
        [self.west, self.south, self.east, self.north]
    }

    /// Returns the western edge in degrees.
    pub const fn west(&self) -> f64 {
        self.west
    }

    /// Returns the southern edge in degrees.
    pub const fn south(&self) -> f64 {
        self.south
    }

    /// Returns the eastern edge in degrees.
    pub const fn east(&self) -> f64 {
        self.east
    }

    /// Returns the northern edge in degrees.
    pub const fn north(&self) -> f64 {
        self.north
    }

    /// Returns the eastern edge in degrees as it is met going east from the western one: beyond 180 when the box runs over
    /// ±180.
    pub(crate) fn unrolled_east(&self) -> f64 {
        if self.crosses_antimeridian() { self.east + 360.0 } else { self.east }
    }

    /// Tells whether the box runs over ±180.
    pub fn crosses_antimeridian(&self) -> bool {
        self.west > self.east
    }

    /// Returns the one or two planar boxes `(west, south, east, north)`, with west not above east, that make up this one.
    pub fn planar(&self) -> impl Iterator<Item = [f64; 4]> + use<> {
        let Self { west, south, east, north } = *self;
        let (first, second) = if self.crosses_antimeridian() {
            ([west, south, 180.0, north], Some([-180.0, south, east, north]))
        } else {
            ([west, south, east, north], None)
        };
        std::iter::once(first).chain(second)
    }

    /// Tells whether the two boxes share a point; edges count. Longitudes 180 and -180 are held to be apart, as
    /// RFC 7946 cuts geometry there.
    pub fn intersects(&self, other: &Self) -> bool {
        self.planar().any(|a| other.planar().any(|b| a[0] <= b[2] && b[0] <= a[2] && a[1] <= b[3] && b[1] <= a[3]))
    }

    /// Tells whether `other` lies within this box, give or take `tolerance` degrees.
    pub fn contains(&self, other: &Self, tolerance: f64) -> bool {
        other.planar().all(|inner| {
            self.planar().any(|outer| {
                outer[0] - tolerance <= inner[0]
                    && inner[2] <= outer[2] + tolerance
                    && outer[1] - tolerance <= inner[1]
                    && inner[3] <= outer[3] + tolerance
            })
        })
    }
}

impl fmt::Display for Bbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}, {}, {}]", self.west, self.south, self.east, self.north)
    }
}

impl serde::Serialize for Bbox {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_array().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bbox(west: f64, south: f64, east: f64, north: f64) -> Bbox {
        Bbox::new(west, south, east, north).unwrap()
    }

    #[test]
    fn nan_infinity_and_swapped_axes_are_no_box() {
        for [w, s, e, n] in [
            [f64::NAN, 0.0, 1.0, 1.0],
            [0.0, f64::NAN, 1.0, 1.0],
            [0.0, 0.0, f64::INFINITY, 1.0],
            [0.0, 2.0, 1.0, 1.0],
            [0.0, 0.0, 1.0, 90.1],
            [368.0, 0.0, 371.0, 1.0],
        ] {
            assert!(Bbox::new(w, s, e, n).is_err());
        }
    }

    #[test]
    fn a_wrapped_box_meets_both_sides_of_the_antimeridian_and_nothing_between() {
        let wrapped = bbox(170.0, -20.0, -170.0, -15.0);
        assert!(wrapped.intersects(&bbox(175.0, -18.0, 176.0, -17.0)));
        assert!(wrapped.intersects(&bbox(-171.0, -18.0, -170.0, -17.0)));
        assert!(!wrapped.intersects(&bbox(-169.9, -18.0, 169.9, -17.0)));
        assert!(wrapped.intersects(&wrapped));
    }

    #[test]
    fn containment_holds_across_the_antimeridian() {
        let wrapped = bbox(170.0, -20.0, -170.0, -15.0);
        assert!(wrapped.contains(&bbox(179.0, -18.0, -179.0, -17.0), 0.0));
        assert!(Bbox::WORLD.contains(&wrapped, 0.0));
        assert!(!wrapped.contains(&bbox(-180.0, -18.0, 180.0, -17.0), 0.0));
        assert!(!wrapped.contains(&bbox(169.0, -18.0, -179.0, -17.0), 0.0));
    }
}
