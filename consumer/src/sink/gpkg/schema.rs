//! The tables of the GeoPackage: those of OGC 12-128r18 (GeoPackage 1.3), the features, and the ledger.

use rusqlite::{Connection, Result, TransactionBehavior};

/// "GPKG", the application id of a GeoPackage.
const APPLICATION_ID: i32 = 0x4750_4b47;

/// GeoPackage 1.3, the newest that common versions of GDAL read without a warning.
const USER_VERSION: i32 = 10_300;

const TABLES: &str = r#"
CREATE TABLE gpkg_spatial_ref_sys (
  srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY, organization TEXT NOT NULL,
  organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT);
INSERT INTO gpkg_spatial_ref_sys VALUES
  ('Undefined Cartesian SRS', -1, 'NONE', -1, 'undefined', NULL),
  ('Undefined geographic SRS', 0, 'NONE', 0, 'undefined', NULL),
  ('WGS 84 geodetic', 4326, 'EPSG', 4326,
   'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563,AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],PRIMEM["Greenwich",0,AUTHORITY["EPSG","8901"]],UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]],AUTHORITY["EPSG","4326"]]',
   'longitude and latitude in degrees');
CREATE TABLE gpkg_contents (
  table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE, description TEXT DEFAULT '',
  last_change DATETIME NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE,
  srs_id INTEGER REFERENCES gpkg_spatial_ref_sys(srs_id));
CREATE TABLE gpkg_geometry_columns (
  table_name TEXT NOT NULL, column_name TEXT NOT NULL, geometry_type_name TEXT NOT NULL,
  srs_id INTEGER NOT NULL REFERENCES gpkg_spatial_ref_sys(srs_id), z TINYINT NOT NULL, m TINYINT NOT NULL,
  CONSTRAINT pk_geom_cols PRIMARY KEY (table_name, column_name), CONSTRAINT uk_gc_table_name UNIQUE (table_name));
CREATE TABLE gpkg_extensions (
  table_name TEXT, column_name TEXT, extension_name TEXT NOT NULL, definition TEXT NOT NULL, scope TEXT NOT NULL,
  CONSTRAINT ge_tce UNIQUE (table_name, column_name, extension_name));
-- Keeps GDAL from listing the ledger as a layer.
INSERT INTO gpkg_extensions VALUES
  (NULL, NULL, 'gdal_aspatial', 'http://gdal.org/geopackage_aspatial.html', 'read-write');
CREATE TABLE features (
  fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, geom BLOB, feature_id TEXT NOT NULL UNIQUE, properties TEXT,
  areas TEXT NOT NULL, event_id TEXT NOT NULL, version INTEGER, occurred_at DATETIME, body_sha256 TEXT,
  left_at DATETIME);
INSERT INTO gpkg_contents (table_name, data_type, identifier, description, srs_id) VALUES
  ('features', 'features', 'features', 'the latest state of each feature that meets an area of interest', 4326);
INSERT INTO gpkg_geometry_columns VALUES ('features', 'geom', 'GEOMETRY', 4326, 2, 0);
CREATE TABLE geoclaim_ledger (
  consumer TEXT NOT NULL, event_id TEXT NOT NULL, feature_id TEXT NOT NULL, outcome TEXT NOT NULL,
  recorded_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  PRIMARY KEY (consumer, event_id)) WITHOUT ROWID;
"#;

/// What came later than the first files: what is known of every feature that came to the sink, held or not, so that no
/// older state brings it back; and notes of what was discarded.
const LATER_TABLES: &str = "
CREATE TABLE geoclaim_features (
  number INTEGER PRIMARY KEY AUTOINCREMENT, feature_id TEXT NOT NULL UNIQUE, event_id TEXT NOT NULL, version INTEGER,
  held INTEGER NOT NULL, partition INTEGER NOT NULL, record_offset INTEGER NOT NULL, record_time INTEGER);
INSERT INTO geoclaim_features (feature_id, event_id, version, held, partition, record_offset)
  SELECT feature_id, event_id, version, 1, -1, -1 FROM features;
CREATE TABLE geoclaim_notes (number INTEGER PRIMARY KEY AUTOINCREMENT, consumer TEXT NOT NULL, note BLOB NOT NULL);
";

/// Makes the tables where there are none.
pub(super) fn prepare(connection: &mut Connection) -> Result<()> {
    connection.pragma_update(None, "cache_size", -8_000)?;
    // Immediate: two that open a new file at once make its tables once.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !has(&transaction, "table", "geoclaim_ledger")? {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", USER_VERSION)?;
    }
    if !has(&transaction, "table", "geoclaim_features")? {
        transaction.execute_batch(LATER_TABLES)?;
        if !transaction.column_exists(None, "features", "left_at")? {
            transaction.execute_batch("ALTER TABLE features ADD COLUMN left_at DATETIME")?;
        }
    }
    transaction.commit()
}

fn has(connection: &Connection, kind: &str, name: &str) -> Result<bool> {
    connection.query_row("SELECT count(*) > 0 FROM sqlite_master WHERE type = ?1 AND name = ?2", [kind, name], |row| row.get(0))
}
