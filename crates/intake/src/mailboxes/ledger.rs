//! How far each mailbox was read: the rows of `gleaner.polls`.

use gleaner_ingest::Channel;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::error::{Error, Result};

/// What is known of a mailbox before a poll.
#[derive(Debug, Clone, Default)]
pub(super) struct Account {
    pub history_id: Option<String>,
    /// Seconds since the mailbox was last read to its end.
    pub read_ago: Option<f64>,
    /// Seconds until the push notifications expire.
    pub watched_for: Option<f64>,
    pub failures: i32,
    pub refused_grant: Option<String>,
    /// The channel waits for a person to give a new grant.
    pub needs_reauth: bool,
}

/// Requests a poll now.
pub(super) async fn request(client: &impl GenericClient, channel: Uuid) -> Result<()> {
    client.query_typed("select gleaner.request_poll($1)", &[(&channel, Type::UUID)]).await?;
    Ok(())
}

pub(super) async fn read(client: &impl GenericClient, channel: Uuid) -> Result<Account> {
    let row = client
        .query_typed_opt(
            "select p.history_id, extract(epoch from now() - p.last_sync_at)::float8 as read_ago,
                    extract(epoch from p.watch_expires_at - now())::float8 as watched_for,
                    p.failures, p.refused_grant, c.state = 'needs_reauth' as needs_reauth
             from gleaner.polls as p
             join public.ingestion_providers as c on c.id = p.provider_id
             where p.provider_id = $1",
            &[(&channel, Type::UUID)],
        )
        .await?;
    let row = row.ok_or(Error::Lost)?;
    Ok(Account {
        history_id: row.get("history_id"),
        read_ago: row.get("read_ago"),
        watched_for: row.get("watched_for"),
        failures: row.get("failures"),
        refused_grant: row.get("refused_grant"),
        needs_reauth: row.get("needs_reauth"),
    })
}

/// Records that the mailbox was read to its end. Only the holder of the lease may do so: a server that lost it may have
/// read less.
pub(super) async fn keep_read(
    client: &impl GenericClient,
    channel: Uuid,
    lease: i64,
    history_id: &str,
    mailbox: Option<&str>,
    stored: usize,
) -> Result<()> {
    let stored = i32::try_from(stored).unwrap_or(i32::MAX);
    let kept = client
        .query_typed(
            "update gleaner.polls
             set history_id = $3, mailbox = coalesce($4, mailbox), last_stored = $5, last_sync_at = now(), last_error = null, failures = 0,
                 refused_grant = null
             where provider_id = $1 and lease = $2 and status = 'running'
             returning provider_id",
            &[(&channel, Type::UUID), (&lease, Type::INT8), (&history_id, Type::TEXT), (&mailbox, Type::TEXT), (&stored, Type::INT4)],
        )
        .await?;
    if kept.is_empty() { Err(Error::Lost) } else { Ok(()) }
}

/// Records that the poll failed, and why.
pub(super) async fn keep_failure(client: &impl GenericClient, channel: Uuid, lease: i64, error: &str) -> Result<()> {
    client
        .query_typed(
            "update gleaner.polls set last_error = $3, failures = failures + 1 where provider_id = $1 and lease = $2",
            &[(&channel, Type::UUID), (&lease, Type::INT8), (&error, Type::TEXT)],
        )
        .await?;
    Ok(())
}

pub(super) async fn keep_watch(client: &impl GenericClient, channel: Uuid, expires_ms: i64) -> Result<()> {
    client
        .query_typed(
            "update gleaner.polls set watch_expires_at = to_timestamp($2::float8 / 1000) where provider_id = $1",
            &[(&channel, Type::UUID), (&(expires_ms as f64), Type::FLOAT8)],
        )
        .await?;
    Ok(())
}

/// Records that Google has refused the grant for good. True for the first server that records it, which then notifies
/// people.
pub(super) async fn keep_refused(client: &impl GenericClient, channel: &Channel, fingerprint: &str, why: &str) -> Result<bool> {
    client
        .query_typed(
            "update gleaner.polls set refused_grant = $2 where provider_id = $1",
            &[(&channel.id, Type::UUID), (&fingerprint, Type::TEXT)],
        )
        .await?;
    let rows = client
        .query_typed(
            "update public.ingestion_providers set state = 'needs_reauth', state_detail = $2
             where id = $1 and state is distinct from 'needs_reauth' returning id",
            &[(&channel.id, Type::UUID), (&why, Type::TEXT)],
        )
        .await?;
    Ok(!rows.is_empty())
}

/// Records that the grant works again.
pub(super) async fn keep_ready(client: &impl GenericClient, channel: Uuid) -> Result<()> {
    client
        .query_typed(
            "update public.ingestion_providers set state = 'ready', state_detail = null where id = $1 and state = 'needs_reauth'",
            &[(&channel, Type::UUID)],
        )
        .await?;
    Ok(())
}

/// Records that the poll has ended, with or without success.
pub(super) async fn keep_looked(client: &impl GenericClient, channel: Uuid, lease: i64) -> Result<()> {
    client
        .query_typed(
            "update gleaner.polls set last_look_at = clock_timestamp() where provider_id = $1 and lease = $2",
            &[(&channel, Type::UUID), (&lease, Type::INT8)],
        )
        .await?;
    Ok(())
}

/// Records that a poll begins. A request after this needs another poll.
pub(super) async fn keep_begun(client: &impl GenericClient, channel: Uuid, lease: i64) -> Result<()> {
    client
        .query_typed(
            "update gleaner.polls set look_began_at = clock_timestamp() where provider_id = $1 and lease = $2",
            &[(&channel, Type::UUID), (&lease, Type::INT8)],
        )
        .await?;
    Ok(())
}

/// Schedules another poll if one was requested while this poll was running. Call it after the item was snoozed, not before:
/// a later request finds a waiting row and reschedules it itself.
pub(super) async fn look_again(client: &impl GenericClient, channel: Uuid) -> Result<bool> {
    let moved = client
        .query_typed(
            "update gleaner.polls set wanted_at = clock_timestamp()
             where provider_id = $1 and status = 'ready' and wanted_at > look_began_at and due_at > now()
             returning provider_id",
            &[(&channel, Type::UUID)],
        )
        .await?;
    Ok(!moved.is_empty())
}

/// Which of these messages are stored already and need not be fetched again.
pub(super) async fn known(client: &impl GenericClient, channel: Uuid, ids: &[String]) -> Result<Vec<String>> {
    let rows = client
        .query_typed(
            "select a.external_id from public.activities as a where a.provider_id = $1 and a.external_id = any($2)",
            &[(&channel, Type::UUID), (&ids, Type::TEXT_ARRAY)],
        )
        .await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
