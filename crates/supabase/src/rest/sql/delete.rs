use gleaner_http::WireError;
use http::StatusCode;

use super::{Compiler, Scope, Statement, where_all};
use crate::rest::catalogue::Relation;

impl<'a> Compiler<'a> {
    /// Deletes the rows that pass the filters.
    pub(crate) fn delete(mut self, relation: &'a Relation, show: bool, count: bool) -> Result<Statement, WireError> {
        let filter = self.write_filter(relation, "DELETE")?;
        let delete = format!("delete from {} as t0{filter}", relation.sql);
        self.write(relation, &delete, show, count, super::read::NO_NUMBER)
    }

    /// The filter of a write. Without one it is refused, so that a forgotten filter does not cost a table.
    pub(super) fn write_filter(&mut self, relation: &'a Relation, act: &str) -> Result<String, WireError> {
        let conditions = self.conditions(&Scope::of(relation), &[])?;
        if conditions.is_empty() {
            return Err(WireError::new(StatusCode::BAD_REQUEST, "21000", format!("{act} requires a WHERE clause")));
        }
        Ok(where_all(&conditions))
    }
}
