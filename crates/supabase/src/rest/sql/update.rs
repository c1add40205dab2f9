use gleaner_http::WireError;

use super::{Compiler, Statement, typed, written_column};
use crate::rest::body::Rows;
use crate::rest::catalogue::Relation;

impl Compiler<'_> {
    /// Updates the rows that pass the filters with the values of the body. `None` when the body has no values.
    pub(crate) fn update(mut self, relation: &Relation, body: Rows, show: bool, count: bool) -> Result<Option<Statement>, WireError> {
        let filter = self.write_filter(relation, "UPDATE")?;
        let names = self.query.columns.as_ref().unwrap_or(&body.keys);
        let columns = names.iter().map(|name| written_column(relation, name)).collect::<Result<Vec<_>, _>>()?;
        if columns.is_empty() {
            return Ok(None);
        }
        let set: Vec<_> = columns.iter().map(|column| format!("{0} = body.{0}", column.sql)).collect();
        let body = format!("{}({}::pg_catalog.json) as body({})", body.taken_apart_by(), self.values.text(body.text), typed(columns));
        let update = format!("update {} as t0 set {} from {body}{filter}", relation.sql, set.join(", "));
        self.write(relation, &update, show, count, super::read::NO_NUMBER).map(Some)
    }
}
