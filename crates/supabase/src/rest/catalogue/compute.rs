//! Which functions are columns or relationships of a table or view: those whose only argument is its row.

use std::collections::HashMap;

use super::{Computed, Function, Gives, Relation, Returns, Type};

/// Records the functions of every relation's rows.
pub(super) fn compute(relations: &mut [Relation], functions: &[Function], kinds: &HashMap<u32, Type>) {
    let by_row: HashMap<u32, usize> = relations.iter().enumerate().map(|(at, relation)| (relation.row_type, at)).collect();
    for function in functions {
        let [row] = function.arguments.as_slice() else { continue };
        let Some(at) = by_row.get(&row.oid) else { continue };
        let gives = match &function.returns {
            Returns::Value if !function.many => Gives::Value(kinds.get(&function.result).cloned().unwrap_or_default()),
            Returns::Rows { relation: Some(relation), .. } => {
                Gives::Rows { relation: relation.clone(), many: function.many && !function.one_row, set: function.many }
            }
            _ => continue,
        };
        relations[*at].computed.push(Computed { name: function.name.clone(), sql: function.sql.clone(), gives });
    }
}
