//! What is possible for a table on the workers of a Citus cluster.

use super::check::{Check, is_one_of};
use crate::declaration::{Declaration, PerKind};
use crate::introspect::{Distribution, Table};

/// Whether the rows are spread over several servers.
pub(super) fn distributed(check: &mut Check<'_>, d: &Declaration, dead: Option<&(&str, Option<Table>)>) -> bool {
    let Some(found) = check.table.distribution.clone() else { return false };
    check_tenant(check, d, &found);
    check_access(check, &found);
    check_key(check, d);
    if let Some((name, Some(dead))) = dead {
        check_dead(check, d, name, dead);
    }
    for (what, declared, instead) in [
        ("bulk", d.bulk.is_some(), "leave `bulk` out: claims write their leases on the rows"),
        ("notify", d.notify == Some(true), "leave `notify` out: it needs a trigger, and Citus allows none; workers poll"),
        ("owner", d.owner.is_some(), "leave `owner` out: the policy of an owner cannot be read inside an update of a shard"),
        ("due", d.due.is_some(), "leave `due` out and write the time into due_at: no trigger copies it"),
        ("recovered", d.recovered.is_some(), "leave `recovered` out: the column `lost` has the number"),
        ("hold per kind", matches!(d.hold, Some(PerKind::ByKind(_))), "write one duration; a claim may ask for another by p_hold"),
        ("deadline per kind", matches!(d.deadline, Some(PerKind::ByKind(_))), "write one duration"),
        ("a partitioned table", check.table.kind == 'p', "distribute a table without partitions"),
    ] {
        if declared {
            check.mistake(format!("{what} is not supported on a distributed table"), instead);
        }
    }
    true
}

/// A claim goes to one shard if the distribution column is first in its condition.
fn check_tenant(check: &mut Check<'_>, d: &Declaration, found: &Distribution) {
    let table = check.table.sql();
    match &found.column {
        Some(column) if d.tenant.as_ref() == Some(column) => {}
        Some(column) => check.mistake(format!("{table} is distributed by {column:?}"), format!("write tenant = {column:?}")),
        None if found.reference => check.mistake(
            format!("{table} is a reference table: every act would write every worker"),
            "distribute it by its tenant: select undistribute_table(…), then create_distributed_table(…)",
        ),
        None => check
            .mistake(format!("{table} is distributed without a column"), "distribute it by its tenant: select create_distributed_table(…)"),
    }
}

fn check_access(check: &mut Check<'_>, found: &Distribution) {
    let (table, owner) = (check.table.sql(), &check.table.owner);
    if !found.owner_logs_in {
        check.mistake(
            format!("{table} belongs to {owner}, which cannot log in, and the nodes of a Citus cluster connect to each other as that role"),
            "alter table … owner to a role that can",
        );
    }
    if !found.on_coordinator {
        check.mistake("this server is a worker of the Citus cluster", "connect to the coordinator to attach");
    }
}

/// On a worker, identity values begin at 2^48, beyond the range of smaller integers.
fn check_key(check: &mut Check<'_>, d: &Declaration) {
    let table = check.table;
    let numbered = table.primary_key.iter().filter(|c| Some(*c) != d.tenant.as_ref()).find_map(|name| {
        let column = table.columns.get(name)?;
        (column.has_default && is_one_of(&column.data_type, &["integer", "smallint"])).then(|| (name.clone(), column.data_type.clone()))
    });
    if let Some((name, data_type)) = numbered {
        check.mistake(
            format!("key {name:?} is {data_type}, and the numbers that a worker gives out begin at 2^48"),
            "make it bigint before the table is distributed",
        );
    }
}

fn check_dead(check: &mut Check<'_>, d: &Declaration, name: &str, dead: &Table) {
    match dead.distribution.as_ref().map(|found| &found.column) {
        Some(Some(column)) if d.tenant.as_ref() != Some(column) => check.mistake(
            format!("dead = {name:?} is distributed by {column:?}, which is not the tenant"),
            "distribute it by a column with the tenant's name",
        ),
        _ => {}
    }
}
