//! Reading a file of areas.

use std::{collections::BTreeMap, sync::Arc};

use geoclaim_common::{
    Bbox,
    geojson::{CrsMember, check_crs, scalar_text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Area;

/// An areas file that is no good: which area, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{area}: {problem}")]
pub struct AreaError {
    /// The area's id or place in the file.
    pub area: String,
    /// What is wrong and what to do.
    pub problem: String,
}

/// The properties that hold the distance around an area, in metres.
const DISTANCES: [&str; 2] = ["radius_m", "buffer_m"];

/// Reads areas: a feature collection, a feature, a bare geometry, a box `[west, south, east, north]` or a list of
/// boxes, or any of these one a line. A feature without a geometry but with a `bbox` is a box; west greater than east
/// crosses the antimeridian. A feature with a property `radius_m` or `buffer_m` is its geometry and whatever lies within
/// so many metres of it; a point or a line needs one. An area's id is the feature's `id`, or its property `id` or
/// `name`, or its place in the file. Areas of one id are one area.
///
/// ```
/// let areas = geoclaim_consumer::aoi::parse_areas(br#"{"type":"Feature","id":"fiji","bbox":[176,-21,-178,-15],"geometry":null}"#)?;
/// assert_eq!((&*areas[0].id, areas[0].polygons.len()), ("fiji", 2));
/// # Ok::<(), geoclaim_consumer::aoi::AreaError>(())
/// ```
///
/// # Errors
/// The first area that is no good, by name. An empty file is no good either.
pub fn parse_areas(text: &[u8]) -> Result<Vec<Area>, AreaError> {
    let text =
        std::str::from_utf8(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)).map_err(|error| wrong("the file", error))?;
    let mut found = Vec::new();
    match serde_json::from_str::<&RawValue>(text) {
        Ok(document) => take(document.get(), &mut found)?,
        Err(whole) => {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let documents: Result<Vec<&RawValue>, _> = lines.map(serde_json::from_str).collect();
            // Neither one document nor lines: the error of the whole is the one that helps.
            for document in documents.map_err(|_| wrong("the file", whole))? {
                take(document.get(), &mut found)?;
            }
        }
    }
    if found.is_empty() {
        return Err(wrong("the file", "it has no areas"));
    }
    Ok(merged(found))
}

/// Reads a box written as `west,south,east,north`; `None` when it is not of that form.
pub fn parse_box(text: &str) -> Option<Result<Area, AreaError>> {
    let numbers: Vec<f64> = text.split(',').map(|number| number.trim().parse().ok()).collect::<Option<_>>()?;
    (numbers.len() == 4).then(|| boxed("aoi", &numbers))
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(borrow)]
    features: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    bbox: Option<Vec<f64>>,
    #[serde(borrow)]
    crs: Option<&'a RawValue>,
    #[serde(borrow)]
    geometry: Option<&'a RawValue>,
    #[serde(borrow)]
    properties: Option<&'a RawValue>,
}

fn take(text: &str, found: &mut Vec<Area>) -> Result<(), AreaError> {
    let place = format!("area {}", found.len() + 1);
    if text.starts_with('[') {
        return take_boxes(text, &place, found);
    }
    let document: Document<'_> = serde_json::from_str(text).map_err(|error| wrong(&place, error))?;
    if let Some(crs) = document.crs.map(|crs| crs.get().as_bytes()) {
        // Areas are longitude and latitude, as the boxes of envelopes are.
        let problem = |_| wrong(&place, "its crs is not WGS 84: transform the areas, or leave the member out if they are");
        check_crs(crs, 0..crs.len(), CrsMember::Refuse).map_err(problem)?;
    }
    if document.kind.as_deref() == Some("FeatureCollection") {
        let features = document.features.ok_or_else(|| wrong(&place, "a FeatureCollection without features"))?;
        return features.into_iter().try_for_each(|feature| take(feature.get(), found));
    }
    let name = document.id.and_then(text_of).or_else(|| document.properties.and_then(name_of));
    let id = name.unwrap_or_else(|| (found.len() + 1).to_string());
    let geometry = document.geometry.map(RawValue::get).filter(|geometry| *geometry != "null");
    let area = match (document.kind.as_deref(), geometry, &document.bbox) {
        (Some("Feature") | None, Some(geometry), _) => {
            let metres = document.properties.map(|properties| distance_of(&id, properties)).transpose()?.flatten();
            geometry_area(&id, geometry, metres)?
        }
        (Some("Feature") | None, None, Some(bbox)) => boxed(&id, bbox)?,
        (Some("Feature") | None, None, None) => return Err(wrong(&id, "it has neither a geometry nor a bbox")),
        (Some(_), _, _) => geometry_area(&id, text, None)?,
    };
    found.push(area);
    Ok(())
}

fn take_boxes(text: &str, place: &str, found: &mut Vec<Area>) -> Result<(), AreaError> {
    if let Ok(numbers) = serde_json::from_str::<Vec<f64>>(text) {
        found.push(boxed(&(found.len() + 1).to_string(), &numbers)?);
        return Ok(());
    }
    let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| wrong(place, error))?;
    elements.into_iter().try_for_each(|element| take(element.get(), found))
}

fn geometry_area(id: &str, geometry: &str, metres: Option<f64>) -> Result<Area, AreaError> {
    let area = match metres {
        Some(metres) => Area::around_geojson(id, geometry.as_bytes(), metres),
        None => Area::from_geojson(id, geometry.as_bytes()),
    };
    area.map_err(|error| wrong(id, error.problem))
}

/// Returns the distance around an area, in metres, that its properties give.
fn distance_of(id: &str, properties: &RawValue) -> Result<Option<f64>, AreaError> {
    let Ok(properties) = serde_json::from_str::<BTreeMap<String, &RawValue>>(properties.get()) else { return Ok(None) };
    let Some((name, value)) = DISTANCES.iter().find_map(|name| properties.get_key_value(*name)) else { return Ok(None) };
    let metres = serde_json::from_str::<Option<f64>>(value.get());
    metres.map_err(|_| wrong(id, format!("{name} is {}: a number of metres is expected", value.get())))
}

fn boxed(id: &str, numbers: &[f64]) -> Result<Area, AreaError> {
    let [west, south, east, north] = match *numbers {
        [west, south, east, north] | [west, south, _, east, north, _] => [west, south, east, north],
        _ => return Err(wrong(id, format!("a box has 4 numbers, [west, south, east, north], and this has {}", numbers.len()))),
    };
    if west <= east && (east > 180.0 || west < -180.0) {
        // A box beyond ±180, such as 170 to 190: the same as 170 to -170.
        let pieces = geoclaim_common::extent::planar_longitudes(west, east);
        let areas: Result<Vec<_>, _> = pieces.map(|[west, east]| boxed(id, &[west, south, east, north])).collect();
        return Ok(Area { id: id.into(), polygons: areas?.into_iter().flat_map(|area| area.polygons).collect() });
    }
    let bbox = Bbox::new(west, south, east, north).map_err(|error| wrong(id, error))?;
    Ok(Area::from_bbox(id, &bbox))
}

fn text_of(raw: &RawValue) -> Option<String> {
    scalar_text(raw.get().as_bytes())
}

fn name_of(properties: &RawValue) -> Option<String> {
    let properties: BTreeMap<String, &RawValue> = serde_json::from_str(properties.get()).ok()?;
    ["id", "name"].iter().find_map(|name| properties.get(*name).and_then(|raw| text_of(raw)))
}

fn merged(found: Vec<Area>) -> Vec<Area> {
    let mut places: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    let mut areas: Vec<Area> = Vec::with_capacity(found.len());
    for area in found {
        match places.get(&area.id) {
            Some(place) => areas[*place].polygons.extend(area.polygons),
            None => {
                places.insert(Arc::clone(&area.id), areas.len());
                areas.push(area);
            }
        }
    }
    areas
}

fn wrong(area: &str, problem: impl ToString) -> AreaError {
    AreaError { area: area.to_owned(), problem: problem.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<(String, usize)> {
        parse_areas(text.as_bytes()).unwrap().into_iter().map(|area| (area.id.to_string(), area.polygons.len())).collect()
    }

    fn error(text: &str) -> String {
        parse_areas(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn areas_come_in_any_usual_form() {
        let polygon = r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}"#;
        assert_eq!(ids(polygon), [("1".into(), 1)]);
        assert_eq!(ids("[170,-20,-170,-15]"), [("1".into(), 2)]);
        assert_eq!(ids("[[0,0,1,1],[2,2,3,3]]"), [("1".into(), 1), ("2".into(), 1)]);
        assert_eq!(ids("[170,-20,190,-15]"), [("1".into(), 2)]);
        let features = format!(
            r#"{{"type":"FeatureCollection","features":[
            {{"type":"Feature","id":7,"geometry":{polygon},"properties":null}},
            {{"type":"Feature","properties":{{"name":"b"}},"geometry":null,"bbox":[1,2,3,4]}},
            {{"type":"Feature","id":7,"geometry":{polygon}}}]}}"#
        );
        assert_eq!(ids(&features), [("7".into(), 2), ("b".into(), 1)]);
        assert_eq!(ids(&format!("{polygon}\n{polygon}\n")), [("1".into(), 1), ("2".into(), 1)]);
        assert_eq!(ids(r#"{"id":"x","bbox":[1,2,3,4]}"#), [("x".into(), 1)]);
    }

    #[test]
    fn an_area_that_is_no_good_is_named() {
        assert!(error("{}").contains("1: it has neither"));
        assert!(error(r#"{"type":"FeatureCollection","features":[]}"#).contains("no areas"));
        assert!(
            error(r#"{"type":"Feature","id":"p","geometry":{"type":"Point","coordinates":[1,2]}}"#)
                .starts_with("p: a point or a line is no area without a distance")
        );
        for (metres, problem) in
            [("0", "a distance of 0"), ("2e6", "a distance of 2000000"), ("\"wide\"", "radius_m is \"wide\"")]
        {
            let point = format!(
                r#"{{"type":"Feature","id":"p","properties":{{"radius_m":{metres}}},"geometry":{{"type":"Point","coordinates":[1,2]}}}}"#
            );
            assert!(error(&point).starts_with(&format!("p: {problem}")), "{}", error(&point));
        }
        assert!(error(r#"{"type":"Feature","id":"q","bbox":[1,2,3],"geometry":null}"#).starts_with("q: a box has 4 numbers"));
        assert!(error(r#"{"type":"Feature","id":"r","bbox":[1,92,3,94],"geometry":null}"#).starts_with("r: [1, 92"));
        let wide =
            r#"{"type":"Feature","id":"s","geometry":{"type":"Polygon","coordinates":[[[179,0],[-179,0],[-179,1],[179,0]]]}}"#;
        assert!(error(wide).starts_with("s: an edge from longitude"), "{}", error(wide));
        assert!(error("{\"type\":").contains("the file"));
        let swiss = r#"{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::2056"}}"#;
        let collection = format!(
            r#"{{"type":"FeatureCollection","crs":{swiss},"features":[{{"type":"Feature","id":"t","bbox":[1,2,3,4],"geometry":null}}]}}"#
        );
        assert!(error(&collection).contains("its crs is not WGS 84"), "{}", error(&collection));
        assert_eq!(ids(&collection.replace("EPSG::2056", "OGC:1.3:CRS84")), [("t".into(), 1)]);
    }

    #[test]
    fn points_have_a_radius_and_lines_a_buffer_on_either_side_of_the_antimeridian() {
        let with =
            |geometry: &str| format!(r#"{{"type":"Feature","id":"a","properties":{{"buffer_m":50000}},"geometry":{geometry}}}"#);
        assert_eq!(ids(&with(r#"{"type":"Point","coordinates":[8.5,47.4]}"#)), [("a".into(), 1)]);
        assert_eq!(ids(&with(r#"{"type":"Point","coordinates":[179.9,47.4]}"#)), [("a".into(), 2)]);
        assert_eq!(ids(&with(r#"{"type":"LineString","coordinates":[[1,1],[2,2],[3,1]]}"#)), [("a".into(), 2)]);
        let polygon = r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}"#;
        assert_eq!(ids(&with(polygon)), [("a".into(), 4)], "the polygon and its three sides");
    }

    #[test]
    fn a_box_on_the_command_line_is_four_numbers() {
        assert_eq!(parse_box("170,-20,-170,-15").unwrap().unwrap().polygons.len(), 2);
        assert!(parse_box("areas.geojson").is_none());
        assert!(parse_box("1,2,3,99").unwrap().is_err());
    }
}
