//! The dry run: what a migration would do here, rehearsed in a transaction that is rolled back, because acts are rendered
//! from tables that an earlier step may have to create first.

use tokio_postgres::{Client, Transaction};

use super::{BOOTSTRAP, Kind, OUTSIDE_TRANSACTION, State, Step, declaration_of, status};
use crate::attach::{column_script, grant_script};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::render::render;

/// The SQL a migration would run now, to be read and reviewed. Nothing is changed; locks are taken for a moment, and given up
/// rather than waited for.
pub async fn dry_run(client: &mut Client) -> Result<String> {
    let pending: Vec<Step> = status(client).await?.into_iter().filter(|s| s.state != State::Applied).collect();
    if pending.is_empty() {
        return Ok("-- Nothing to do: the schema is up to date.\n".into());
    }
    let tx = client.transaction().await.map_err(Error::doing("begin"))?;
    let prepare = format!(
        "set local lock_timeout = '1500ms'; set local check_function_bodies = off; {BOOTSTRAP}; set local client_min_messages = warning"
    );
    tx.batch_execute(&prepare).await.map_err(Error::doing("prepare the rehearsal"))?;
    let mut out = format!(
        "-- What `gleaner migrate` would run now: {} steps. It also records each, which running this text by hand does not.\n\
         set check_function_bodies = off;\n{BOOTSTRAP};\n",
        pending.len()
    );
    for step in &pending {
        out += &format!("\n-- sql/{} ({})\n", step.name, if step.state == State::Pending { "new" } else { "changed" });
        rehearse(&tx, step, &mut out).await?;
    }
    tx.rollback().await.map_err(Error::doing("roll the rehearsal back"))?;
    Ok(out)
}

async fn rehearse(tx: &Transaction<'_>, step: &Step, out: &mut String) -> Result<()> {
    let failed = || Error::doing(format!("rehearse {}", step.name));
    if step.kind != Kind::Queue {
        *out += step.text.trim_end();
        out.push('\n');
        if step.text.starts_with(OUTSIDE_TRANSACTION) {
            return Ok(());
        }
        return tx.batch_execute(step.text).await.map_err(failed());
    }
    let declaration = declaration_of(step.name, step.text)?;
    let plan = Plan::make(tx, &declaration).await?;
    for word in &plan.missing_labels {
        let data_type = &plan.table.columns[&declaration.status.column].data_type;
        *out += &format!("alter type {data_type} add value if not exists {};\n", crate::introspect::literal(word));
    }
    let mut script = column_script(&plan).map(|(script, _)| script + "\n").unwrap_or_default();
    script += &grant_script(&plan);
    script.push('\n');
    script += &render(&plan)?;
    *out += &script;
    if plan.missing_labels.is_empty() {
        tx.batch_execute(&script).await.map_err(failed())?;
    }
    *out += &format!("-- Rows that wait already get their times in slices of 5000, by gleaner.fill_{}.\n", plan.name);
    for index in &plan.indexes {
        let unique = if index.unique { "unique " } else { "" };
        *out +=
            &format!("create {unique}index concurrently if not exists {} {};\n", crate::introspect::quote(&index.name), index.definition);
    }
    Ok(())
}
