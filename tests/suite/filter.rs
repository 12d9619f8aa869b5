//! The filter against brute force: whatever meets an area passes, for geometries and areas of every kind.

use geo::{BoundingRect, Coord, Geometry, Intersects, LineString, MapCoords, MultiPolygon, Point, Polygon, Rect};
use geoclaim_common::{
    Bbox, Envelope,
    cover::Cover,
    extent::{LongEdges, MeasureOptions, measure},
};
use geoclaim_consumer::aoi::{Area, AreaIndex};
use geoclaim_tests::random::Random;

const CASES: u64 = 100_000;

/// What the cases came to.
#[derive(Debug, Default)]
struct Tally {
    met: u64,
    passed: u64,
    cells: u64,
}

/// Where a geometry or an area is drawn: around a centre, so far out, on a grid or not.
struct Pen {
    centre: [f64; 2],
    reach: f64,
    grid: Option<f64>,
}

impl Pen {
    fn new(random: &mut Random) -> Self {
        let reach = 10_f64.powf(random.unit() * 3.7 - 2.0);
        let near = |random: &mut Random, edge: f64| edge - reach * random.unit();
        let x = if random.one_in(4) { near(random, 180.0) } else { 180.0 * random.unit() };
        let y = if random.one_in(5) { near(random, 90.0) } else { 90.0 * random.unit() };
        let centre = [x, y].map(|at| if random.one_in(2) { at } else { -at });
        // On a grid, edges lie on those of cells; beside the antimeridian both sides would then count as touched.
        let grid = (random.one_in(3) && centre[0].abs() + reach < 179.0).then(|| 2_f64.powi(random.below(6) as i32 - 4));
        Self { centre, reach, grid }
    }

    /// Returns one that draws close by.
    fn beside(&self, random: &mut Random) -> Self {
        let reach = self.reach * 10_f64.powf(random.unit() * 2.0 - 1.5);
        let at = |random: &mut Random, centre: f64| centre + (2.0 * random.unit() - 1.0) * 1.5 * (reach + self.reach);
        let centre = [at(random, self.centre[0]), at(random, self.centre[1]).clamp(-90.0, 90.0)];
        Self { centre, reach: reach.min(50.0), grid: self.grid }
    }

    fn position(&self, random: &mut Random) -> Coord {
        let [x, y] = self.centre.map(|at| at + (2.0 * random.unit() - 1.0) * self.reach);
        let [x, y] = [x, y].map(|at| self.grid.map_or(at, |grid| (at / grid).round() * grid));
        Coord { x, y: y.clamp(-90.0, 90.0) }
    }

    /// A ring around the centre, or one that crosses itself, runs back on itself, or has no inside.
    fn ring(&self, random: &mut Random, reach: f64) -> LineString {
        let count = 3 + random.below(9);
        let mut ring: Vec<Coord> = match random.below(4) {
            0 => (0..count).map(|_| self.position(random)).collect(),
            1 => [self.position(random), self.position(random)].into_iter().cycle().take(count as usize).collect(),
            _ => {
                let at = |n: u64, random: &mut Random| {
                    let (sin, cos) = (n as f64 / count as f64 * std::f64::consts::TAU).sin_cos();
                    let out = reach * (0.5 + random.unit() / 2.0);
                    let [x, y] = [self.centre[0] + out * cos, self.centre[1] + out * sin];
                    let [x, y] = [x, y].map(|at| self.grid.map_or(at, |grid| (at / grid).round() * grid));
                    Coord { x, y: y.clamp(-90.0, 90.0) }
                };
                (0..count).map(|n| at(n, random)).collect()
            }
        };
        ring.push(ring[0]);
        LineString::new(ring)
    }

    fn polygon(&self, random: &mut Random) -> Polygon {
        let holes = if random.one_in(3) { vec![self.ring(random, self.reach * 0.4)] } else { Vec::new() };
        Polygon::new(self.ring(random, self.reach), holes)
    }

    fn geometry(&self, random: &mut Random) -> Geometry {
        match random.below(7) {
            0 => Geometry::Point(Point(self.position(random))),
            1 => Geometry::MultiPoint((0..random.below(5)).map(|_| Point(self.position(random))).collect()),
            2 => Geometry::LineString((0..2 + random.below(5)).map(|_| self.position(random)).collect()),
            3 => {
                let members: [Geometry; 2] = [self.polygon(random).into(), Point(self.position(random)).into()];
                Geometry::GeometryCollection(members.into_iter().collect())
            }
            4 => Geometry::MultiPolygon(MultiPolygon((0..3).map(|_| self.polygon(random)).collect())),
            _ => Geometry::Polygon(self.polygon(random)),
        }
    }

    fn area(&self, random: &mut Random) -> Option<Area> {
        if random.one_in(2) {
            let [a, b] = [(); 2].map(|()| self.position(random));
            let x = [a.x.min(b.x), a.x.max(b.x)].map(|x| x - 360.0 * ((x + 180.0) / 360.0).floor());
            return Some(Area::from_bbox("box", &Bbox::new(x[0], a.y.min(b.y), x[1], a.y.max(b.y)).ok()?));
        }
        let text = geojson::Geometry::from(&Geometry::from(self.polygon(random))).to_string();
        Area::from_geojson("polygon", text.as_bytes()).ok()
    }
}

/// Tells whether `geo` finds a common point, the Earth turned as often as it takes.
fn brute_force(geometry: &Geometry, area: &Area) -> bool {
    let Some(bounds) = geometry.bounding_rect() else { return false };
    (-3..=3).map(|turn| 360.0 * f64::from(turn)).any(|shift| {
        let (west, east) = (bounds.min().x + shift, bounds.max().x + shift);
        let is_near = if shift == 0.0 { west <= 180.0 && east >= -180.0 } else { west < 180.0 && east > -180.0 };
        let turned = || geometry.map_coords(|Coord { x, y }| Coord { x: x + shift, y });
        is_near && area.polygons.iter().any(|polygon| turned().intersects(polygon))
    })
}

fn passes(envelope: &Envelope, area: Area) -> bool {
    let index = AreaIndex::new(vec![area]);
    let Some(cover) = envelope.cover().unwrap() else { return false };
    // What the box alone rules out, the cover rules out too.
    assert!(index.meets(cover.bbox()) || !index.meets_cover(&cover));
    index.meets_cover(&cover)
}

fn envelope_of(body: &str, options: &MeasureOptions) -> Envelope {
    let (extent, _) = measure(body.as_bytes(), options).unwrap();
    let plain = format!(r#"{{"feature_id":"f","event_id":"e","geometry":{body}}}"#);
    let mut envelope = Envelope::decode(plain.as_bytes()).unwrap();
    (envelope.bbox, envelope.cells) = (extent.bbox, extent.cells);
    Envelope::decode(&envelope.encode()).unwrap()
}

fn case(random: &mut Random, tally: &mut Tally) {
    let pen = Pen::new(random);
    let geometry = pen.geometry(random);
    let Some(area) = pen.beside(random).area(random) else { return };
    let body = geojson::Geometry::from(&geometry).to_string();
    let options = MeasureOptions { cover_bytes: 20 + random.below(380) as usize, ..MeasureOptions::default() };
    let envelope = envelope_of(&body, &options);
    tally.cells += u64::from(envelope.cells.is_some());
    let (met, passed) = (brute_force(&geometry, &area), passes(&envelope, area.clone()));
    assert!(passed || !met, "{body} meets {area:?} and does not pass with {envelope:?}");
    tally.met += u64::from(met);
    tally.passed += u64::from(passed);
}

/// A ring around a pole: whatever lies between it and the pole is in it.
fn polar_case(random: &mut Random) {
    let (count, base) = (5 + random.below(10), 20.0 + 60.0 * random.unit());
    let latitude = |random: &mut Random| (base + 9.0 * random.unit()) * if count % 2 == 0 { 1.0 } else { -1.0 };
    let mut ring: Vec<[f64; 2]> =
        (0..count).map(|n| [-180.0 + 360.0 * (n as f64 + 0.4 * random.unit()) / count as f64, latitude(random)]).collect();
    ring.push(ring[0]);
    let body = format!(r#"{{"type":"Polygon","coordinates":[{ring:?}]}}"#);
    let options = MeasureOptions { long_edges: LongEdges::Cross, cover_bytes: 400, ..MeasureOptions::default() };
    let envelope = envelope_of(&body, &options);
    let inner = 90.0 - (90.0 - base - 9.0) * random.unit();
    let at = Point::new(-180.0 + 360.0 * random.unit(), if count % 2 == 0 { inner } else { -inner });
    let area = Rect::new(at, at);
    let bbox = Bbox::new(area.min().x, area.min().y, area.max().x, area.max().y).unwrap();
    assert!(passes(&envelope, Area::from_bbox("point", &bbox)), "{body} does not hold {bbox}");
}

/// Returns the seed that is asked for, or a new one, and prints it.
fn seed() -> u64 {
    let seed = std::env::var("GEOCLAIM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(Random::seed);
    println!("seed {seed}: repeat with GEOCLAIM_SEED={seed}");
    seed
}

#[test]
fn whatever_lies_between_a_polar_ring_and_its_pole_passes() {
    let mut random = Random::new(seed());
    (0..5_000).for_each(|_| polar_case(&mut random));
}

#[test]
fn the_filter_never_says_no_where_brute_force_says_yes() {
    let seed = seed();
    let share = |n: u64| {
        move || {
            let (mut random, mut tally) = (Random::new(seed.wrapping_add(n)), Tally::default());
            for _ in 0..CASES / 2 {
                case(&mut random, &mut tally);
            }
            tally
        }
    };
    let threads = [0, 1].map(|n| std::thread::spawn(share(n)));
    for tally in threads.map(|thread| thread.join().unwrap()) {
        println!("{tally:?} of {} cases", CASES / 2);
        // Neither side of the comparison is idle.
        assert!(tally.met > CASES / 20 && tally.cells > CASES / 10 && tally.passed < CASES * 2 / 5, "{tally:?}");
    }
}

#[test]
fn python_reads_the_cells_as_rust_does() {
    let mut random = Random::new(7);
    let envelopes: Vec<Envelope> = (0..300)
        .map(|_| {
            let geometry = Pen::new(&mut random).geometry(&mut random);
            let options = MeasureOptions { cover_bytes: 400, ..MeasureOptions::default() };
            envelope_of(&geojson::Geometry::from(&geometry).to_string(), &options)
        })
        .filter(|envelope| envelope.cells.is_some())
        .collect();
    assert!(envelopes.len() > 100);
    let lines: String = envelopes.iter().map(|envelope| format!("{}\n", String::from_utf8(envelope.encode()).unwrap())).collect();
    let Some(read) = crate::interop::python("cover.py", &[], lines.as_bytes()) else { return };
    for (line, envelope) in read.lines().zip(&envelopes) {
        let read: Vec<[f64; 4]> = serde_json::from_str(line).unwrap();
        let as_planar = |[w, s, e, n]: [f64; 4]| Bbox::new(w, s, e, n).unwrap().planar().collect::<Vec<_>>();
        let mut read: Vec<[f64; 4]> = read.into_iter().flat_map(as_planar).collect();
        let mut ours = Cover::new(envelope.bbox.unwrap(), envelope.cells.as_ref()).unwrap().boxes();
        read.sort_by(|a, b| a.partial_cmp(b).unwrap());
        ours.sort_by(|a, b| a.partial_cmp(b).unwrap());
        assert_eq!(read, ours);
    }
}
