//! The cover: where within its bbox a body lies, in a few hundred bytes, and never less than where it lies.
//!
//! A cover is a set of closed cells. A cell of level n is 2⁻ⁿ degrees wide and high; columns and rows are counted from
//! longitude and latitude 0, so every edge of a cell is exact. A box that crosses the antimeridian is taken to run on
//! beyond 180. The cells come from one pass over the body ([`crate::extent::measure`]), in memory that does not grow
//! with it, and only those within the bbox count.
//!
//! # The bytes
//!
//! They follow the bbox in the envelope's `cover`, see [`crate::envelope`]:
//!
//! | Offset | Length | Content |
//! | --- | --- | --- |
//! | 0 | 1 | kind, 1; of any other kind nothing is known, and the bbox stands for itself |
//! | 1 | 1 | level of the roots, signed |
//! | 2 | 1 | deepest level, signed |
//! | 3 | to the end | the coded tree; bytes missing at the end are zeros |
//!
//! **Roots** are the cells of their level from column ⌊west·2ⁿ⌋ to ⌈east·2ⁿ⌉ - 1 and from row ⌊south·2ⁿ⌋ to ⌈north·2ⁿ⌉ - 1,
//! at least one each, where east is 360 more if it is below west; row by row, from the south-west.
//!
//! **The tree** is coded level by level. In a level, for each cell in order: is it *not empty*? If not empty and above
//! the deepest level: is it *split*? A cell that is neither is *full*. The next level is the quarters of the split cells
//! in the same order, south-west, south-east, north-west, north-east of each.
//!
//! **Each decision** has a context: of the cell's four neighbours (across an edge, of the same level or the undivided
//! larger cell that lies there), 5 × how many are empty + how many are full. What is outside the roots is empty; what
//! is not decided yet, or split, is neither. There are 25 contexts for *not empty* above the deepest level, 25 at it,
//! and 25 for *split*. Each begins with the counts (1, 1) of no and yes, and each decision adds 2 to its own; when they
//! then add up to more than 255, both are halved, rounding up.
//!
//! **The coder** holds `code` (at first the first four bytes, big-endian) and `range` (2³² - 1). For a decision,
//! p = ⌊4096·no / (no + yes)⌋, from 1 to 4095, and bound = ⌊range / 4096⌋·p. If code < bound, it is no, and range = bound;
//! else it is yes, code and range are less by bound. While range < 2²⁴, both are shifted left by eight bits and the next
//! byte enters code from below.

mod check;
mod choose;
mod coder;
mod fill;
mod order;
mod pyramid;
mod raster;
mod trace;
mod walk;

use std::fmt;

use crate::Bbox;
use coder::Decoder;
use walk::{Node, Roots, State, Tree, walk};

pub use check::holds;
pub(crate) use trace::Trace;

/// The kind of cells that is written, and the only one that is known.
const KIND: u8 = 1;

/// The levels that a cell may have: 256 degrees to a decimetre.
const LEVELS: std::ops::RangeInclusive<i8> = -8..=20;

/// The cells of a cover, as they travel.
#[derive(Clone, PartialEq, Eq)]
pub struct Cells(Box<[u8]>);

impl Cells {
    /// Takes bytes that came in an envelope.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Chooses the cells of a trace within `bbox` in at most `room` bytes; `None` when they say no more than the box.
    pub(crate) fn of(trace: Trace, bbox: &Bbox, room: usize) -> Option<Self> {
        choose::choose(trace.finish()?, bbox, room).map(|bytes| Self(bytes.into()))
    }
}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cells({} bytes)", self.0.len())
    }
}

/// The cells are no cells.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cells of the cover are no good: {0}")]
pub struct NotCells(&'static str);

/// Where a body may lie: its bbox, or the cells within it.
///
/// ```
/// use geoclaim_common::{cover::Cover, extent::{MeasureOptions, measure}};
/// let ring: Vec<_> = (0..=360).map(|degrees| f64::from(degrees).to_radians().sin_cos()).map(|(y, x)| [x, y]).collect();
/// let body = format!(r#"{{"type":"Polygon","coordinates":[{ring:?}]}}"#);
/// let (extent, _) = measure(body.as_bytes(), &MeasureOptions { cover_bytes: 100, ..MeasureOptions::default() })?;
/// let cover = Cover::new(extent.bbox.unwrap(), extent.cells.as_ref())?;
/// assert!(cover.meets([0.0, 0.0, 0.1, 0.1]));
/// assert!(!cover.meets([0.95, 0.95, 1.0, 1.0]), "a corner of the bbox");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cover {
    bbox: Bbox,
    tree: Option<Tree>,
}

impl Cover {
    /// Reads the cells within a bbox. Without cells, or with those of a kind that is not known, it is the bbox.
    ///
    /// # Errors
    /// They are of the known kind and no writer makes them: more cells, or other levels, than there are.
    pub fn new(bbox: Bbox, cells: Option<&Cells>) -> Result<Self, NotCells> {
        let tree = match cells.map(Cells::as_bytes) {
            Some([KIND, rest @ ..]) => Some(read(&bbox, rest)?),
            Some(_) | None => None,
        };
        Ok(Self { bbox, tree })
    }

    /// Returns the bbox.
    pub fn bbox(&self) -> &Bbox {
        &self.bbox
    }

    /// Tells whether a planar box, `[west, south, east, north]` with west not above east, meets the cover.
    pub fn meets(&self, planar: [f64; 4]) -> bool {
        self.any_within(planar, |_| true)
    }

    /// Tells whether `test` says yes of any planar box of the cover that meets `window`. Boxes are closed; together those
    /// that meet the world are the cover.
    pub fn any_within(&self, window: [f64; 4], mut test: impl FnMut([f64; 4]) -> bool) -> bool {
        let Some(tree) = &self.tree else {
            return self.bbox.planar().any(|planar| apart(planar, window).is_none() && test(planar));
        };
        let mut open: Vec<u32> = (1..=tree.roots).rev().collect();
        while let Some(id) = open.pop() {
            let node = &tree.nodes[id as usize];
            let mut pieces = self.within_bbox(node).filter(|piece| apart(*piece, window).is_none());
            match node.state {
                State::Empty | State::Open => {}
                State::Full if pieces.any(&mut test) => return true,
                State::Full => {}
                State::Split if pieces.next().is_some() => open.extend((node.quarters..node.quarters + 4).rev()),
                State::Split => {}
            }
        }
        false
    }

    /// Returns the planar boxes of the cover.
    pub fn boxes(&self) -> Vec<[f64; 4]> {
        let mut boxes = Vec::new();
        self.any_within(Bbox::WORLD.to_array(), |planar| {
            boxes.push(planar);
            false
        });
        boxes
    }

    /// Returns a cell within the bbox, as one or two planar boxes, or none. What touches ±180 is on both sides of it.
    fn within_bbox(&self, node: &Node) -> impl Iterator<Item = [f64; 4]> + use<> {
        let size = (-f64::from(node.level)).exp2();
        let [column, row] = [node.column, node.row].map(|at| f64::from(at) * size);
        // Of a box that crosses the antimeridian, the second piece is a turn further on. The sides of cells are exact.
        self.bbox.planar().zip([0.0, 360.0]).filter_map(move |([west, south, east, north], turn)| {
            let [west, east] = [(column - turn).max(west), (column + size - turn).min(east)];
            let [south, north] = [row.max(south), (row + size).min(north)];
            (west <= east && south <= north).then_some([west, south, east, north])
        })
    }
}

/// Returns `Some` when two planar boxes have no point in common.
fn apart(a: [f64; 4], b: [f64; 4]) -> Option<()> {
    (a[0] > b[2] || b[0] > a[2] || a[1] > b[3] || b[1] > a[3]).then_some(())
}

fn read(bbox: &Bbox, text: &[u8]) -> Result<Tree, NotCells> {
    let &[level, deepest, ref coded @ ..] = text else { return Err(NotCells("they are cut off")) };
    let (level, deepest) = (level as i8, deepest as i8);
    if !LEVELS.contains(&level) || !LEVELS.contains(&deepest) || deepest < level {
        return Err(NotCells("there are no such levels"));
    }
    let roots = Roots::over(bbox, level);
    if roots.count() > walk::MOST_ROOTS {
        return Err(NotCells("there are too many roots"));
    }
    walk(roots, deepest, &mut Decoder::new(coded), || State::Open).ok_or(NotCells("there are too many cells"))
}

#[cfg(test)]
mod tests;
