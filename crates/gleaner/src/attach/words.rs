//! The status values: those an enum lacks, and those a check constraint does not allow.

use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::Options;
use crate::error::{Error, Result};
use crate::introspect::literal;
use crate::plan::{Mistake, Plan};

/// A status value that a check constraint rejects would fail in every act, for every row. Checks that also read other columns
/// depend on the row and are not tested.
pub(super) async fn refuse_forbidden(client: &impl GenericClient, plan: &Plan, asked: impl Fn(&String) -> bool) -> Result<()> {
    let status = &plan.declaration.status;
    let words = [&status.ready, &status.running, &status.done, &status.failed].into_iter().chain(&status.claimed).chain(&status.cancelled);
    let words: Vec<&String> = words.filter(|word| asked(word)).collect();
    if words.is_empty() {
        return Ok(());
    }
    // PostgreSQL 18 has constraints that are not enforced, and a catalogue column that marks them.
    let checks = client
        .query_typed(
            "select c.conname::text, pg_get_expr(c.conbin, c.conrelid), pg_get_constraintdef(c.oid)
             from pg_constraint as c join pg_attribute as a on a.attrelid = c.conrelid and a.attname = $2
             where c.conrelid = to_regclass($1) and c.contype = 'c' and c.conkey = array[a.attnum]
               and coalesce((to_jsonb(c) ->> 'conenforced')::boolean, true)
             order by 1",
            &[(&plan.table.sql(), Type::TEXT), (&status.column, Type::TEXT)],
        )
        .await
        .map_err(Error::doing("look for checks of the status column"))?;
    let (column, data_type) = (&plan.shape.status.column, &plan.shape.status.data_type);
    let mut mistakes = Vec::new();
    for check in &checks {
        let (name, expression, definition): (String, String, String) = (check.get(0), check.get(1), check.get(2));
        for word in &words {
            let sql = format!("select ({expression}) is not false from (select {}::{data_type} as {column}) as q", literal(word));
            let act = || Error::doing(format!("test the status word {word:?} against the check constraint {name}"));
            let allowed: bool = client.query_typed(&sql, &[]).await.map_err(act())?[0].get(0);
            if !allowed {
                mistakes.push(Mistake {
                    what: format!("status word {word:?}: the check constraint {name} of {} does not allow it", plan.table.sql()),
                    instead: format!("use a word that it allows, or change the constraint: {definition}"),
                });
            }
        }
    }
    if mistakes.is_empty() { Ok(()) } else { Err(Error::Declaration { queue: plan.name.clone(), mistakes }) }
}

/// Enum values are added in a step of their own: a value added in a transaction cannot be used in it.
pub(super) async fn add_missing(client: &impl GenericClient, plan: &Plan, options: Options, say: &(dyn Fn(&str) + Sync)) -> Result<()> {
    if plan.missing_labels.is_empty() {
        return Ok(());
    }
    let status = &plan.declaration.status;
    let data_type = &plan.table.columns[&status.column].data_type;
    if !options.add_words {
        let mistakes = plan
            .missing_labels
            .iter()
            .map(|word| Mistake {
                what: format!("status word {word:?}: the enum {data_type} has no such value"),
                instead: format!(
                    "use one of {}, or run attach with --add-words (an enum value cannot be removed again)",
                    plan.table.columns[&status.column].labels.join(", ")
                ),
            })
            .collect();
        return Err(Error::Declaration { queue: plan.name.clone(), mistakes });
    }
    for word in &plan.missing_labels {
        say(&format!("adding the value {word:?} to {data_type}"));
        client
            .batch_execute(&format!("alter type {data_type} add value if not exists {}", literal(word)))
            .await
            .map_err(Error::doing(format!("add {word:?} to {data_type}")))?;
    }
    Ok(())
}
