//! Requests a poll, and waits for its end.

use std::time::Duration;

use gleaner_http::{Caller, with_caller};
use serde::Serialize;
use tokio::time::Instant;
use tokio_postgres::types::Type;
use utoipa::ToSchema;
use uuid::Uuid;

use super::Gmail;
use super::error::Result;

/// How often the table is queried while a caller waits.
const GLANCE: Duration = Duration::from_millis(100);

/// A poll that was requested.
#[derive(Debug, Clone)]
pub struct PollRequest {
    pub channel: Uuid,
    pub name: String,
    /// By the database's clock, as text, because it is sent back unchanged.
    pub since: String,
}

/// The result of a requested poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MailboxPoll)]
pub struct Report {
    pub channel: Uuid,
    pub name: String,
    /// `read`, `failed`, `needs_reauth`, or `waiting` when no server has finished it yet.
    pub outcome: &'static str,
    /// The number of new messages.
    pub stored: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<String>,
}

impl Gmail {
    /// Requests a poll of a channel by name or id, or of all Gmail channels. It runs on behalf of the caller, who must see
    /// the channel and be allowed to request a poll.
    pub async fn ask(&self, caller: &Caller, channel: Option<&str>) -> Result<Vec<PollRequest>, gleaner_http::database::Error> {
        let channel = channel.map(str::to_owned);
        let rows = with_caller(&self.pool, caller, |transaction| {
            Box::pin(async move {
                transaction
                    .query_typed(
                        "with wanted as materialized (
                             select c.id, c.name
                             from public.ingestion_providers as c
                             where c.provider_code = 'gmail' and c.is_active and ($1::text is null or c.name = $1 or c.id::text = $1)
                         )
                         select w.id, w.name, clock_timestamp()::text as since, gleaner.request_poll(w.id) is null as asked
                         from wanted as w",
                        &[(&channel, Type::TEXT)],
                    )
                    .await
                    .map_err(gleaner_http::database::Error::doing("ask for a poll"))
            })
        })
        .await?;
        self.wanted.notify_one();
        Ok(rows.iter().map(|row| PollRequest { channel: row.get(0), name: row.get(1), since: row.get(2) }).collect())
    }

    /// Waits until every poll has ended, at most for `within`.
    pub async fn wait_for(&self, asked: &[PollRequest], within: Duration) -> Result<Vec<Report>> {
        let until = Instant::now() + within;
        let mut reports = Vec::new();
        for one in asked {
            let report = loop {
                let report = self.report(one).await?;
                if report.outcome != "waiting" || Instant::now() >= until {
                    break report;
                }
                tokio::time::sleep(GLANCE).await;
            };
            reports.push(report);
        }
        Ok(reports)
    }

    async fn report(&self, asked: &PollRequest) -> Result<Report> {
        let client = self.pool.get().await?;
        // Only a poll that began after the request counts. One that was already running when the request came is followed
        // by another, and that one is the answer.
        let row = client
            .query_typed_opt(
                "select p.last_stored, p.last_error, c.state = 'needs_reauth',
                        p.look_began_at >= $2::text::timestamptz and p.last_look_at >= p.look_began_at and p.status <> 'running'
                 from gleaner.polls as p
                 join public.ingestion_providers as c on c.id = p.provider_id
                 where p.provider_id = $1",
                &[(&asked.channel, Type::UUID), (&asked.since, Type::TEXT)],
            )
            .await?;
        let mut report = Report { channel: asked.channel, name: asked.name.clone(), outcome: "waiting", stored: 0, error: None };
        let Some(row) = row else {
            report.outcome = "failed";
            report.error = Some("the channel is gone".into());
            return Ok(report);
        };
        if row.get::<_, Option<bool>>(3) == Some(true) {
            let error: Option<String> = row.get(1);
            report.outcome = match (&error, row.get(2)) {
                (_, true) => "needs_reauth",
                (Some(_), _) => "failed",
                (None, _) => "read",
            };
            report.stored = if report.outcome == "read" { row.get(0) } else { 0 };
            report.error = error;
        }
        Ok(report)
    }
}
