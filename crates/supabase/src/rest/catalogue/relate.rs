//! Which relations are related: those with a foreign key, and the views that show its columns.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::origin::Origins;
use super::{ForeignKey, Relation};

/// A foreign key between tables, exposed or not.
#[derive(Debug, Deserialize)]
pub(super) struct Key {
    name: String,
    table: u32,
    columns: Vec<i16>,
    referenced_table: u32,
    referenced_columns: Vec<i16>,
    unique: bool,
    in_primary_key: bool,
}

/// Per relation and per table it shows columns of: the names under which each column of the table is shown.
type Shown = HashMap<u32, HashMap<i16, Vec<String>>>;

/// Records the foreign keys of every relation.
pub(super) fn relate(relations: &mut [Relation], keys: Vec<Key>, origins: &Origins) {
    let exposed: HashSet<u32> = relations.iter().map(|relation| relation.oid).collect();
    let shown: Vec<Shown> = relations.iter().map(|relation| shown(relation, origins)).collect();
    let mut showing: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, tables) in shown.iter().enumerate() {
        tables.keys().for_each(|table| showing.entry(*table).or_default().push(at));
    }
    let ways = |table: u32, columns: &[i16]| -> Vec<(usize, Vec<String>)> {
        let among = showing.get(&table).map_or(&[][..], Vec::as_slice).iter();
        among.flat_map(|at| ways(&shown[*at][&table], columns).into_iter().map(|way| (*at, way))).collect()
    };
    for key in keys {
        let targets = ways(key.referenced_table, &key.referenced_columns);
        for (source, columns) in ways(key.table, &key.columns) {
            // A view of a junction table joins what the table joins already. It counts only where the table is not exposed, or
            // where a client names it.
            let repeats = relations[source].view && exposed.contains(&key.table);
            for (target, referenced) in &targets {
                let (schema, relation) = (relations[*target].schema.clone(), relations[*target].name.clone());
                let (name, columns, referenced) = (key.name.clone(), columns.clone(), referenced.clone());
                relations[source].foreign_keys.push(ForeignKey {
                    name,
                    columns,
                    schema,
                    relation,
                    referenced,
                    unique: key.unique,
                    joins: key.in_primary_key,
                    repeats,
                });
            }
        }
    }
}

fn shown(relation: &Relation, origins: &Origins) -> Shown {
    let mut shown = Shown::new();
    for column in &relation.columns {
        let (table, number) = origins.of((relation.oid, column.number));
        shown.entry(table).or_default().entry(number).or_default().push(column.name.clone());
    }
    shown
}

/// The names under which these columns are shown together. A single column may be shown more than once, where a view reads its
/// table twice. For several columns it is unknown which names belong together, and the first ones are taken.
fn ways(shown: &HashMap<i16, Vec<String>>, columns: &[i16]) -> Vec<Vec<String>> {
    match columns {
        [one] => shown.get(one).into_iter().flatten().map(|name| vec![name.clone()]).collect(),
        several => several.iter().map(|column| shown.get(column)?.first().cloned()).collect::<Option<Vec<_>>>().into_iter().collect(),
    }
}
