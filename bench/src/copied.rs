//! A copy of a queue's table for hand-written statements: its columns, its rows and its indexes, without its triggers.

use anyhow::{Context as _, Result};
use tokio_postgres::Client;

use crate::stage::Stage;

/// A queue, and the parts of a hand-written statement on its table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    pub queue: &'static str,
    pub table: &'static str,
    pub status: &'static str,
    pub running: &'static str,
    pub done: &'static str,
    /// How long a claim lasts.
    pub hold: &'static str,
}

impl Source {
    /// The index that claims of rows without an owner use. The name is the engine's, and is written only here.
    fn index(&self) -> String {
        format!("gleaner_{}_global", self.queue)
    }
}

#[derive(Debug)]
pub(crate) struct Copied {
    source: Source,
    /// The columns of the index of waiting rows.
    waiting: String,
    columns: String,
}

pub(crate) const NAME: &str = "gleaner_bench_copy";

impl Copied {
    pub(crate) async fn make(stage: &Stage, source: Source) -> Result<Self> {
        let client = stage.connect().await?;
        client
            .batch_execute(&format!(
                "drop table if exists {NAME}; create table {NAME} (like {} including all excluding indexes)",
                source.table
            ))
            .await?;
        let options = "select array_to_string(reloptions, ', ') from pg_class where oid = $1::text::regclass";
        if let Some(options) = client.query_one(options, &[&source.table]).await?.get::<_, Option<String>>(0) {
            client.batch_execute(&format!("alter table {NAME} set ({options})")).await?;
        }
        let waiting = copy_indexes(&client, source).await?;
        let columns = "select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
                       where attrelid = $1::text::regclass and attnum > 0 and not attisdropped and attgenerated = ''";
        let columns = client.query_one(columns, &[&source.table]).await?.get(0);
        Ok(Self { source, waiting, columns })
    }

    /// Replaces all rows by those that the queue's own table has now.
    pub(crate) async fn fill(&self, stage: &Stage) -> Result<()> {
        let client = stage.connect().await?;
        let (columns, table) = (&self.columns, self.source.table);
        client
            .batch_execute(&format!(
                "truncate {NAME}; insert into {NAME} ({columns}) overriding system value select {columns} from {table}; checkpoint"
            ))
            .await?;
        Ok(client.batch_execute(&format!("vacuum analyze {NAME}")).await?)
    }

    /// Claims up to `rows` rows, with a lease that expires by itself.
    pub(crate) fn claim(&self, rows: i32, returning: &str) -> String {
        let Self { source: Source { status, running, hold, .. }, waiting, .. } = self;
        let find = format!(
            "select id from {NAME} where {waiting} and due_at <= now() order by due_at, id limit {rows} for no key update skip locked"
        );
        let these = if rows == 1 { format!("= ({find})") } else { format!("= any (array({find}))") };
        format!(
            "update {NAME} set {status} = '{running}', due_at = now() + interval '{hold}',
                    lease = greatest(lease + 1, (extract(epoch from now()) * 1000000)::int8)
             where id {these} returning {returning}"
        )
    }

    /// Completes rows, and keeps them.
    pub(crate) fn complete(&self) -> String {
        format!("update {NAME} set {} = '{}' where id = any ($1)", self.source.status, self.source.done)
    }

    pub(crate) async fn strike(self, stage: &Stage) -> Result<()> {
        Ok(stage.connect().await?.batch_execute(&format!("drop table {NAME}")).await?)
    }
}

/// The same indexes, except that the one of waiting rows has only time and key: what one would create for a hand-written statement.
async fn copy_indexes(client: &Client, source: Source) -> Result<String> {
    let indexes = client
        .query(
            "select c.relname::text, i.indisunique, pg_get_expr(i.indpred, i.indrelid), substring(pg_get_indexdef(i.indexrelid) from ' USING .*$')
             from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid = $1::text::regclass",
            &[&source.table],
        )
        .await?;
    let mut waiting = None;
    for index in indexes {
        let (name, unique, predicate, mut definition): (String, bool, Option<String>, String) =
            (index.get(0), index.get(1), index.get(2), index.get(3));
        if let Some(predicate) = predicate.filter(|_| name == source.index()) {
            definition = format!(" using btree (due_at, id) where {predicate}");
            waiting = Some(predicate);
        }
        let unique = if unique { "unique" } else { "" };
        client.batch_execute(&format!("create {unique} index on {NAME}{definition}")).await?;
    }
    waiting.with_context(|| format!("{} has no index {}", source.table, source.index()))
}
