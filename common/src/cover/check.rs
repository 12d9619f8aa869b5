//! Whether a cover that somebody declared holds a body.

use super::Cover;
use crate::{
    geojson::{Position, ScanError, ScanOptions, Visitor},
    reproject,
};

/// Tells whether `cover` holds every position of the body, give or take `tolerance` degrees. What lies between two
/// positions is taken on trust.
///
/// # Errors
/// What [`reproject::scan`] rejects.
pub fn holds(body: &[u8], cover: &Cover, tolerance: f64, options: &ScanOptions) -> Result<bool, ScanError> {
    let mut check = Check { cover, tolerance, last: [f64::INFINITY; 4], holds: true };
    reproject::scan(body, options, &mut check)?;
    Ok(check.holds)
}

struct Check<'a> {
    cover: &'a Cover,
    tolerance: f64,
    /// The box that held the last position, and mostly holds the next.
    last: [f64; 4],
    holds: bool,
}

impl Visitor for Check<'_> {
    #[inline]
    fn position(&mut self, Position { x, y, .. }: Position) {
        let [west, south, east, north] = self.last;
        if x < west || x > east || y < south || y > north {
            self.look(x, y);
        }
    }
}

impl Check<'_> {
    #[inline(never)]
    fn look(&mut self, x: f64, y: f64) {
        let tolerance = self.tolerance;
        let x = x - 360.0 * f64::from(crate::extent::turns_of(x));
        // A vertex on the cut that was written beyond it is held on either side.
        let sides = if x.abs() == 180.0 { [180.0, -180.0] } else { [x, x] };
        self.holds &= sides.into_iter().any(|x| {
            let around = [x - tolerance, y - tolerance, x + tolerance, y + tolerance];
            self.cover.any_within(around, |piece| {
                self.last = piece;
                true
            })
        });
    }
}
