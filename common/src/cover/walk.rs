//! The walk through the tree of cells that writer and reader share, level by level, and what each decision is told
//! from: how many of a cell's four neighbours are known to be empty, and how many full.

use super::coder::{Coder, Model};
use crate::Bbox;

/// What a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing of the geometry is in it.
    Empty,
    /// It belongs to the cover as a whole.
    Full,
    /// Its quarters differ.
    Split,
    /// Not decided yet.
    Open,
}

/// A cell: column and row at its level, which begin at longitude and latitude 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) level: i8,
    pub(super) column: i32,
    pub(super) row: i32,
    pub(super) state: State,
    /// The first of its four quarters: south-west, south-east, north-west, north-east.
    pub(super) quarters: u32,
    /// West, east, south, north: a cell of the same level, or the larger undivided one that holds it.
    neighbours: [u32; 4],
}

/// The cell that is outside the roots, and empty.
const OUTSIDE: u32 = 0;

/// Most cells of a tree; what is written stays far below.
pub(super) const MOST_NODES: usize = 1 << 14;

/// Most roots of a tree.
pub(super) const MOST_ROOTS: i64 = 64;

/// Columns and rows of the roots, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Roots {
    pub(super) level: i8,
    pub(super) columns: [i32; 2],
    pub(super) rows: [i32; 2],
}

impl Roots {
    /// Returns the cells of a level that a bbox has a part in.
    pub(super) fn over(bbox: &Bbox, level: i8) -> Self {
        let scale = f64::from(level).exp2();
        let ends = |low: f64, high: f64| {
            let first = (low * scale).floor();
            [first, ((high * scale).ceil() - 1.0).max(first)].map(|end| end as i32)
        };
        Self { level, columns: ends(bbox.west(), bbox.unrolled_east()), rows: ends(bbox.south(), bbox.north()) }
    }

    /// Returns how many there are.
    pub(super) fn count(&self) -> i64 {
        [self.columns, self.rows].into_iter().map(|[first, last]| i64::from(last) - i64::from(first) + 1).product()
    }

    /// Returns them by level, column and row.
    pub(super) fn cells(self) -> impl Iterator<Item = (i8, i32, i32)> {
        let Self { level, columns: [west, east], rows: [south, north] } = self;
        (south..=north).flat_map(move |row| (west..=east).map(move |column| (level, column, row)))
    }
}

/// A tree of cells. Node 0 stands for the outside; the roots follow, row by row from the south-west.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) roots: u32,
}

/// Walks a tree whose cells are decided by `given`, one after the other in the order of the walk, of which a reader's coder
/// takes no notice. Cells of `deepest` are
/// not split. `None` when there are more cells than any writer makes.
pub(super) fn walk(roots: Roots, deepest: i8, coder: &mut impl Coder, mut given: impl FnMut() -> State) -> Option<Tree> {
    let mut tree = plant(roots);
    let mut models = [[Model::NEW; 25]; 3];
    let mut level = 1..tree.nodes.len();
    while !level.is_empty() {
        for at in level.clone() {
            let Node { level, neighbours, .. } = tree.nodes[at];
            let count = |state| neighbours.iter().filter(|id| tree.nodes[**id as usize].state == state).count();
            let context = 5 * count(State::Empty) + count(State::Full);
            let wanted = given();
            let is_last = level >= deepest;
            tree.nodes[at].state = if !coder.code(&mut models[usize::from(is_last)][context], wanted != State::Empty) {
                State::Empty
            } else if is_last || !coder.code(&mut models[2][context], wanted == State::Split) {
                State::Full
            } else {
                State::Split
            };
        }
        level = tree.split(level)?;
    }
    Some(tree)
}

/// Lays out the roots.
fn plant(Roots { level, columns, rows }: Roots) -> Tree {
    let outside = Node { level, column: 0, row: 0, state: State::Empty, quarters: 0, neighbours: [OUTSIDE; 4] };
    let width = columns[1] - columns[0] + 1;
    let id = |column: i32, row: i32| {
        let inside = (columns[0]..=columns[1]).contains(&column) && (rows[0]..=rows[1]).contains(&row);
        if inside { (1 + (row - rows[0]) * width + column - columns[0]) as u32 } else { OUTSIDE }
    };
    let mut nodes = vec![outside];
    for row in rows[0]..=rows[1] {
        for column in columns[0]..=columns[1] {
            let neighbours = [id(column - 1, row), id(column + 1, row), id(column, row - 1), id(column, row + 1)];
            nodes.push(Node { level, column, row, state: State::Open, quarters: 0, neighbours });
        }
    }
    Tree { roots: nodes.len() as u32 - 1, nodes }
}

impl Tree {
    /// Appends the quarters of the split cells of a level, all of which are decided. Returns where the new level lies.
    fn split(&mut self, level: std::ops::Range<usize>) -> Option<std::ops::Range<usize>> {
        let start = self.nodes.len();
        let mut end = start;
        for node in self.nodes[level.clone()].iter_mut().filter(|node| node.state == State::Split) {
            node.quarters = end as u32;
            end += 4;
        }
        if end > MOST_NODES {
            return None;
        }
        for at in level.filter(|at| self.nodes[*at].state == State::Split).collect::<Vec<_>>() {
            let quarters = self.quarters_of(&self.nodes[at]);
            self.nodes.extend(quarters);
        }
        Some(start..end)
    }

    fn quarters_of(&self, parent: &Node) -> [Node; 4] {
        let first = parent.quarters;
        // Beyond the parent's edge: a quarter of its neighbour, or the neighbour itself when it is undivided.
        let beyond = |side: usize, quarter: u32| {
            let id = parent.neighbours[side];
            let neighbour = &self.nodes[id as usize];
            if neighbour.state == State::Split { neighbour.quarters + quarter } else { id }
        };
        std::array::from_fn(|quarter| {
            let (quarter, x, y) = (quarter as u32, quarter as u32 & 1, quarter as u32 >> 1);
            let neighbours = [
                if x == 1 { first + quarter - 1 } else { beyond(0, quarter + 1) },
                if x == 0 { first + quarter + 1 } else { beyond(1, quarter - 1) },
                if y == 1 { first + quarter - 2 } else { beyond(2, quarter + 2) },
                if y == 0 { first + quarter + 2 } else { beyond(3, quarter - 2) },
            ];
            let (column, row) = (2 * parent.column + x as i32, 2 * parent.row + y as i32);
            Node { level: parent.level + 1, column, row, state: State::Open, quarters: 0, neighbours }
        })
    }
}
