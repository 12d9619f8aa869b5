//! Every limit of geoclaim, in one place.
//!
//! A number that bounds memory, a record or a nesting depth stands here and nowhere else, so that a reader can
//! see all of them at once and a reviewer can see one change. Settings take their defaults from here.
//! Nothing in this module allocates or decides: it only names numbers, with their units last in the name.

/// Default inline limit: the largest whole record, in bytes as the broker counts them, that still carries its body.
pub const INLINE_RECORD_BYTES: usize = 262_144;

/// A record with a claim check stays below this many bytes, key, headers and framing included.
pub const CLAIM_RECORD_BYTES: usize = 2_048;

/// What Kafka adds to one record in a batch of its own: 61 bytes of batch header (message format 2) and at most
/// 21 bytes of lengths and deltas in front of key and value.
pub const RECORD_FRAMING_BYTES: usize = 61 + 21;

/// What Kafka adds to one header: two lengths of at most five bytes each.
pub const HEADER_FRAMING_BYTES: usize = 10;

/// Room that must remain between the inline limit and the topic's `max.message.bytes`.
pub const RECORD_OVERHEAD_BYTES: usize = 4_096;

/// Longest `feature_id`, in bytes of UTF-8.
pub const FEATURE_ID_BYTES: usize = 512;

/// Longest `event_id`, in bytes of UTF-8.
pub const EVENT_ID_BYTES: usize = 256;

/// Longest `crs` name, in bytes.
pub const CRS_BYTES: usize = 64;

/// Default for the largest body that is read, published or fetched, in bytes.
pub const BODY_BYTES: u64 = 256 << 20;

/// From this length on, a body is worth a second thread: its digest takes as long as many starts of one.
pub const SPLIT_WORK_BYTES: usize = 512 << 10;

/// From this length on, a producer asks the store for a body before it sends it: a round trip is little beside the transfer
/// that it may save.
pub const LOOK_FIRST_BYTES: u64 = 1 << 20;

/// From this length on, a body is kept in a file and not in memory, if no other setting says so.
pub const SPOOL_FROM_BYTES: u64 = 64 << 20;

/// Default for the bytes of bodies that are kept in files at once.
pub const SPOOL_BYTES: u64 = 4 << 30;

/// What a body that is kept in a file takes of a budget of memory while it comes: the ranges on their way.
pub const SPOOLED_COST_BYTES: u64 = (RANGES_AT_ONCE as u64 + 1) * RANGE_BYTES;

/// From this length on, a body is put in parts, so that a part that fails is sent again and not the whole.
pub const PUT_IN_PARTS_BYTES: u64 = 64 << 20;

/// The length of a part.
pub const PART_BYTES: usize = 16 << 20;

/// From this length on, a body is got in ranges.
pub const GET_IN_RANGES_BYTES: u64 = 16 << 20;

/// The length of a range.
pub const RANGE_BYTES: u64 = 4 << 20;

/// How many ranges of a body are got at once.
pub const RANGES_AT_ONCE: usize = 3;

/// Default for the bytes of bodies that a producer holds at once, beside the one it is reading.
pub const PUBLISH_IN_FLIGHT_BYTES: u64 = 24 << 20;

/// Default for the bytes of records and bodies that a consumer holds at once.
pub const CONSUME_IN_FLIGHT_BYTES: u64 = 512 << 20;

/// Default and most for the cells of a cover, in bytes after the bbox.
pub const COVER_BYTES: usize = 400;

/// Deepest nesting of JSON arrays and objects that is read, as in `serde_json`.
pub const JSON_DEPTH: usize = 128;

/// Deepest nesting of `GeometryCollection` in `GeometryCollection`.
pub const COLLECTION_DEPTH: usize = 16;

/// Longitudes beyond ±180 are normalised, up to ten turns; what lies beyond is not a longitude.
pub const LONGITUDE_DEGREES: f64 = 3_600.0;

/// Largest magnitude of a third or further ordinate (metres, seconds, milliseconds): beyond it, it is a mistake.
pub const ORDINATE_MAGNITUDE: f64 = 1e15;

/// Longest error text that is kept in a dead letter or a log line, in bytes.
pub const ERROR_TEXT_BYTES: usize = 256;

/// Most that the headers of a dead letter take beside its record, in bytes: an id of each kind, a topic's name and an
/// error text, each twice, and their names.
pub const LETTER_HEADER_BYTES: usize = 4_096;
