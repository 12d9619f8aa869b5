//! Areas of interest: which envelopes a consumer wants.
//!
//! Two steps. The *filter* compares bounding boxes in an R-tree before anything is fetched; it may over-report and
//! never under-reports. The *refinement* compares the exact geometry after the fetch, in one pass over the body and
//! in memory that does not grow with it.

mod area;
mod around;
mod coarse;
mod edges;
mod file;
mod index;
mod live;
mod refine;
mod shape;
mod tree;

pub use area::Area;
pub(crate) use area::{bounds_of_rings, box_polygon};
pub use file::{AreaError, parse_areas, parse_box};
pub use index::AreaIndex;
pub use live::{AreaSet, LiveAreas, Reach};
pub use refine::{refine, refine_places};
pub(crate) use refine::{shifted, turns};
pub(crate) use shape::is_own_box;
