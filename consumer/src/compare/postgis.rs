//! The features of a consumer in PostGIS.

use async_trait::async_trait;
use geoclaim_common::Fault;
use tokio_postgres::{Client, Error, Row};

use super::{Held, HeldFeatures};
use crate::postgres::{cannot, config, connect};

const READ: &str = "SELECT feature_id, event_id, version, body_sha256, areas, left_at IS NOT NULL,
  encode(sha256(coalesce(ST_AsEWKB(geom), '') || coalesce(ST_AsEWKB(geom_z), '')
    || convert_to(coalesce(properties::text, ''), 'UTF8')), 'hex')
  FROM features WHERE consumer = $1 AND ($2::text IS NULL OR feature_id > $2) ORDER BY feature_id LIMIT $3";

/// Reads what a sink has written to PostGIS. Changes nothing.
#[derive(Debug)]
pub struct PostgisFeatures {
    client: Client,
    consumer: String,
}

impl PostgisFeatures {
    /// Connects.
    ///
    /// # Errors
    /// [`geoclaim_common::FaultKind::Configuration`] when the URL or the rights are not as they must be,
    /// [`geoclaim_common::FaultKind::Unavailable`] when nothing answers.
    pub async fn open(url: &str, consumer: impl Into<String>) -> Result<Self, Fault> {
        Ok(Self { client: connect(&config(url)?).await?, consumer: consumer.into() })
    }
}

fn held(row: &Row) -> Result<Held, Error> {
    Ok(Held {
        feature_id: row.try_get(0)?,
        event_id: row.try_get(1)?,
        version: row.try_get(2)?,
        body_sha256: row.try_get(3)?,
        areas: row.try_get(4)?,
        has_left: row.try_get(5)?,
        content: row.try_get(6)?,
    })
}

#[async_trait]
impl HeldFeatures for PostgisFeatures {
    async fn after(&self, feature_id: Option<&str>, most: u32) -> Result<Vec<Held>, Fault> {
        let rows = self.client.query(READ, &[&self.consumer, &feature_id, &i64::from(most)]).await;
        let held = rows.and_then(|rows| rows.iter().map(held).collect());
        held.map_err(|error| cannot("read the features", &error))
    }

    fn kind(&self) -> &'static str {
        "PostGIS"
    }
}
