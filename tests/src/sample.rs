//! Made-up input.

/// Returns a multipolygon of `n` × `n` squares from the origin eastward and northward, as the pattern's publication
/// has it; 120 make 14,400 squares and about 800 kB.
pub fn squares(n: usize) -> String {
    let square = |i: usize, j: usize| {
        let (w, s, e, t) = (i as f64 / 2.0, j as f64 / 2.0, i as f64 / 2.0 + 0.45, j as f64 / 2.0 + 0.45);
        format!("[[[{w},{s}],[{w},{t}],[{e},{t}],[{e},{s}],[{w},{s}]]]")
    };
    let all: Vec<String> = (0..n).flat_map(|i| (0..n).map(move |j| square(i, j))).collect();
    format!(r#"{{"type":"MultiPolygon","coordinates":[{}]}}"#, all.join(","))
}

/// Returns a feature with this id and geometry.
pub fn feature(id: &str, geometry: &str) -> String {
    format!(r#"{{"type":"Feature","id":"{id}","properties":{{"name":"{id}"}},"geometry":{geometry}}}"#)
}

/// Returns a point feature.
pub fn point(id: &str, x: f64, y: f64) -> String {
    feature(id, &format!(r#"{{"type":"Point","coordinates":[{x},{y}]}}"#))
}

/// Returns a feature above the inline limit whose bbox is `[0, 0, 37.95, 37.95]`; each id has bytes of its own.
pub fn large(id: &str) -> String {
    feature(id, &squares(76))
}

/// Returns features one a line.
pub fn lines(features: &[String]) -> String {
    features.iter().map(|feature| format!("{feature}\n")).collect()
}
