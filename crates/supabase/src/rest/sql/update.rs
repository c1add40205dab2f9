use gleaner_http::WireError;

use super::{Compiler, Statement, written_column};
use crate::rest::body::Rows;
use crate::rest::catalogue::Relation;

/// How rows are updated.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Updating {
    /// Columns that the body lacks get their default.
    pub missing_default: bool,
    pub show: bool,
    pub count: bool,
}

impl<'a> Compiler<'a> {
    /// Updates the rows that pass the filters with the values of the body. `None` when the body has no values.
    pub(crate) fn update(mut self, relation: &'a Relation, body: Rows, how: Updating) -> Result<Option<Statement>, WireError> {
        let filter = self.write_filter(relation, "UPDATE")?;
        let names = self.query.columns.as_ref().unwrap_or(&body.keys);
        let columns = names.iter().map(|name| written_column(relation, name)).collect::<Result<Vec<_>, _>>()?;
        if columns.is_empty() {
            return Ok(None);
        }
        let body = self.rows(&columns, body, how.missing_default);
        let set: Vec<_> = columns.iter().zip(&body.values).map(|(column, value)| format!("{} = {value}", column.sql)).collect();
        let update = format!("update {} as t0 set {} from {}{filter}", relation.sql, set.join(", "), body.from);
        self.write(relation, &update, how.show, how.count, super::read::NO_NUMBER).map(Some)
    }
}
