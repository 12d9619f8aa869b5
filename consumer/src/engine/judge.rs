//! What one record calls for. Pure but for the body, which is given.

use geoclaim_common::{
    Envelope, Fault, FaultKind, cover,
    extent::{Extent, MeasureOptions, holds, measure},
    geojson::{CrsMember, Outline, ScanError, ScanOptions},
    reproject,
};

use crate::{
    aoi::{AreaSet, refine},
    resolve::BodyBytes,
    sink::{ChangeKind, State},
};

/// How far a body may stick out of its envelope's bbox, in degrees (about a decimetre): other producers round.
const TOLERANCE_DEGREES: f64 = 1e-6;

/// Returns what the body's coordinates are: the envelope is what says so, whatever the body says of itself.
///
/// # Errors
/// [`FaultKind::Malformed`] when they cannot be transformed to what areas are in.
pub(super) fn crs_of(envelope: &Envelope) -> Result<CrsMember, Fault> {
    reproject::named(&envelope.crs)
        .map(|epsg| epsg.map_or(CrsMember::Ignore, CrsMember::Is))
        .map_err(|problem| Fault::malformed(format!("its body cannot be compared with areas: {problem}")))
}

/// Checks a body, whose coordinates are what [`crs_of`] says, against its envelope and refines it; `None` when it meets other areas than those that are wanted.
///
/// # Errors
/// [`FaultKind::Malformed`] when the body is no GeoJSON, [`FaultKind::Mismatch`] when it contradicts the envelope.
pub(super) fn examine(
    envelope: &Envelope,
    crs: CrsMember,
    body: BodyBytes,
    areas: &AreaSet,
) -> Result<Option<ChangeKind>, Fault> {
    let scan = ScanOptions { crs, ..ScanOptions::default() };
    let options = MeasureOptions { scan, ..MeasureOptions::default() };
    let (extent, outline) = measured(body.bytes(), &options)?;
    let extent = check_extent(envelope, extent, body.bytes(), &options)?;
    let Some(bbox) = &extent.bbox else { return Ok(Some(ChangeKind::Leave)) };
    let met = refine(body.bytes(), bbox, areas.all(), &scan).map_err(|error| no_good(&error))?;
    if met.is_empty() {
        return Ok(Some(ChangeKind::Leave));
    }
    let is_wanted = areas.wants(&met);
    Ok(is_wanted.then(|| ChangeKind::Hold(Box::new(State { areas: met, crs, body, extent, outline }))))
}

fn measured(body: &[u8], options: &MeasureOptions) -> Result<(Extent, Outline), Fault> {
    measure(body, options).map_err(|error| no_good(&error))
}

fn no_good(error: &ScanError) -> Fault {
    Fault::malformed(format!("the body is no good GeoJSON: {error}"))
}

/// Checks bbox, cells and vertex count. An envelope without a bbox or a count says nothing that could be wrong.
fn check_extent(envelope: &Envelope, extent: Extent, body: &[u8], options: &MeasureOptions) -> Result<Extent, Fault> {
    if let Some(declared) = envelope.vertex_count.filter(|declared| *declared != extent.vertex_count) {
        let detail = format!("the envelope declares {declared} vertices, the body has {}", extent.vertex_count);
        return Err(Fault::new(FaultKind::Mismatch, detail));
    }
    let Some(declared) = envelope.bbox else { return Ok(extent) };
    let is_held = extent.bbox.as_ref().is_none_or(|actual| declared.contains(actual, TOLERANCE_DEGREES));
    // The smallest box need not be held by one that is right: a planar one across the antimeridian, say.
    let is_held = is_held || holds(body, &declared, TOLERANCE_DEGREES, &options.scan).map_err(|error| no_good(&error))?;
    if is_held {
        return check_cells(envelope, body, options).map(|()| extent);
    }
    let actual = extent.bbox.map(|bbox| bbox.to_string()).unwrap_or_default();
    Err(Fault::new(FaultKind::Mismatch, format!("the envelope's bbox {declared} does not hold the body's {actual}")))
}

/// Checks the cells, where the envelope has any: a cover that leaves a part out makes other consumers discard it.
fn check_cells(envelope: &Envelope, body: &[u8], options: &MeasureOptions) -> Result<(), Fault> {
    let Some(cover) = envelope.cells.as_ref().and(envelope.cover().ok().flatten()) else { return Ok(()) };
    if cover::holds(body, &cover, TOLERANCE_DEGREES, &options.scan).map_err(|error| no_good(&error))? {
        return Ok(());
    }
    Err(Fault::new(FaultKind::Mismatch, "the cells of the envelope's cover do not hold the body"))
}
