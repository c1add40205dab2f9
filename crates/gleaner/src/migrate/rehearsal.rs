//! The dry run: what a migration would do in this database. It runs in a transaction that is rolled back, because acts are
//! rendered from tables that an earlier step may have to create first.

use std::sync::PoisonError;

use tokio_postgres::{Client, Transaction};

use super::adopt::{self, Adoption};
use super::{BOOTSTRAP, Kind, OUTSIDE_TRANSACTION, State, Step, declaration_of, fitting, is_base, steps_of, system_of, systems};
use crate::attach::{column_script, grant_script, reclaim};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::render::render;

/// The SQL that a migration would run now, for review. Nothing is changed. Locks are taken briefly, and the run gives up rather
/// than wait for one.
pub async fn dry_run(client: &mut Client, asked: &[String]) -> Result<String> {
    let choice = systems::choose(client, asked).await?;
    let pending: Vec<Step> = steps_of(client, &choice.systems).await?.into_iter().filter(|s| !s.state.is_done()).collect();
    if pending.is_empty() {
        return Ok("-- Nothing to do: the schema is up to date.\n".into());
    }
    let mut tx = client.transaction().await.map_err(Error::doing("begin"))?;
    let prepare = format!(
        "set local lock_timeout = '1500ms'; set local check_function_bodies = off; {BOOTSTRAP}; set local client_min_messages = warning"
    );
    tx.batch_execute(&prepare).await.map_err(Error::doing("prepare the rehearsal"))?;
    let mut out = format!(
        "-- What `gleaner migrate` would run now: {} steps. It also records each, which running this text by hand does not.\n\
         set check_function_bodies = off;\n{BOOTSTRAP};\n",
        pending.len()
    );
    let (base, rest): (Vec<Step>, Vec<Step>) = pending.into_iter().partition(is_base);
    for step in &base {
        rehearse(&tx, step, &mut out).await?;
    }
    let said = std::sync::Mutex::new(Vec::new());
    let adoptions = fitting(&mut tx, choice, &|line| said.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned())).await?;
    for line in said.into_inner().unwrap_or_else(PoisonError::into_inner) {
        out += &format!("\n-- {}\n", line.replace('\n', "\n-- "));
    }
    for (system, adoption) in adoptions {
        if let Some(adoption) = &adoption {
            rehearse_adoption(&tx, system, adoption, &mut out).await?;
        }
        let covered = |step: &Step| adoption.is_some() && step.kind == Kind::Versioned;
        for step in rest.iter().filter(|s| system_of(s.name) == Some(system) && !covered(s)) {
            rehearse(&tx, step, &mut out).await?;
        }
    }
    tx.rollback().await.map_err(Error::doing("roll the rehearsal back"))?;
    Ok(out)
}

/// Rehearses the adoption of existing tables, together with the system's other tables.
async fn rehearse_adoption(tx: &Transaction<'_>, system: &str, adoption: &Adoption, out: &mut String) -> Result<()> {
    *out += &format!("\n-- sql/systems/{system}/tables, beside tables that are there already\n");
    for note in adoption.notes() {
        *out += &format!("-- {note}\n");
    }
    let script = adoption.script();
    *out += &script;
    tx.batch_execute(&script).await.map_err(Error::doing(format!("rehearse the tables of {system}")))?;
    for statement in adoption.afterwards() {
        *out += &format!("{statement};\n");
    }
    Ok(())
}

async fn rehearse(tx: &Transaction<'_>, step: &Step, out: &mut String) -> Result<()> {
    let failed = || Error::doing(format!("rehearse {}", step.name));
    *out += &format!(
        "\n-- sql/{} ({})\n",
        step.name,
        match step.state {
            State::Pending => "new",
            State::Drifted => "to repair rights",
            _ => "changed",
        }
    );
    if let Some(theirs) = adopt::occupied(tx, step).await? {
        *out += &format!("-- {theirs} was there first and stays.\n");
        return Ok(());
    }
    if step.kind != Kind::Queue {
        let text = super::text_of(tx, step).await?;
        *out += text.trim_end();
        out.push('\n');
        if step.text.starts_with(OUTSIDE_TRANSACTION) {
            return Ok(());
        }
        return tx.batch_execute(&text).await.map_err(failed());
    }
    let declaration = declaration_of(step.name, step.text)?;
    let plan = Plan::make(tx, &declaration).await?;
    for word in &plan.missing_labels {
        let data_type = &plan.table.columns[&declaration.status.column].data_type;
        *out += &format!("alter type {data_type} add value if not exists {};\n", crate::introspect::literal(word));
    }
    let columns = column_script(&plan).map(|(script, _)| script + "\n").unwrap_or_default();
    *out += &columns;
    tx.batch_execute(&columns).await.map_err(failed())?;
    let mut script = grant_script(&plan);
    script.push('\n');
    script += &reclaim(tx, &plan, None).await?;
    script += &render(&plan)?;
    *out += &script;
    if plan.missing_labels.is_empty() {
        tx.batch_execute(&script).await.map_err(failed())?;
    }
    *out += "-- Rows that wait already get their times in slices of 5000, by attach.\n";
    for index in &plan.indexes {
        let unique = if index.unique { "unique " } else { "" };
        *out +=
            &format!("create {unique}index concurrently if not exists {} {};\n", crate::introspect::quote(&index.name), index.definition);
    }
    Ok(())
}
