//! Why rows were given up, in groups that people can act on.

use tokio_postgres::GenericClient;

use super::{COUNTED, Filter, State, View};
use crate::error::Result;

/// Rows that failed for the same cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The category and the message of the error, without what differs from row to row.
    pub cause: String,
    /// How many rows have it.
    pub count: i64,
    /// The key of one of them.
    pub sample: String,
    /// That row's error message.
    pub message: Option<String>,
    /// When the latest of them was written, where the queue knows.
    pub newest: Option<String>,
}

impl View {
    /// The causes of dead rows, the most frequent first; of so many rows at most as are counted. The second value says that there
    /// may be more.
    pub async fn causes(&self, client: &impl GenericClient, filter: &Filter) -> Result<(Vec<Cause>, bool)> {
        let filter = Filter { state: Some(State::Dead), ..filter.clone() };
        let source = self.source(&filter)?;
        let key = &self.plan.shape.key.column;
        let created =
            self.plan.shape.created.as_ref().map_or_else(|| "null::text".to_owned(), |c| format!("to_jsonb(q.{}) #>> '{{}}'", c.column));
        let sql = format!(
            "select d.cause, count(*), max(d.key), (array_agg(d.message order by d.key desc))[1], max(d.created), sum(count(*)) over () > {COUNTED}
             from (select {cause} as cause, q.{key}::text as key, {message} as message, {created} as created from {source} limit {limit}) as d
             group by d.cause order by count(*) desc, d.cause limit 100",
            cause = self.cause(),
            message = self.message(),
            source = source.sql(),
            limit = COUNTED + 1,
        );
        let rows = self.query(client, &sql, &source, "group dead rows of").await?;
        let causes = rows.iter().map(|r| Cause { cause: r.get(0), count: r.get(1), sample: r.get(2), message: r.get(3), newest: r.get(4) });
        Ok((causes.collect(), rows.first().is_some_and(|r| r.get(5))))
    }

    /// The message of a row's error, as text.
    fn message(&self) -> String {
        let error = self.error();
        format!("case jsonb_typeof({error}) when 'object' then ({error}) ->> 'message' else ({error}) #>> '{{}}' end")
    }

    /// The cause of a row's error: what is left of it without the ids, numbers and quoted values of the row.
    pub(super) fn cause(&self) -> String {
        let (error, message) = (self.error(), self.message());
        format!(
            "concat_ws(': ', case jsonb_typeof({error}) when 'object' then ({error}) ->> 'type' end, \
             coalesce(regexp_replace(left({message}, 200), '[0-9a-f]{{8}}-[0-9a-f-]{{27}}|\"[^\"]*\"|[0-9]+([.:][0-9]+)*', '…', 'g'), 'no reason given'))"
        )
    }
}
