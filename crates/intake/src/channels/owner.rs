//! The owner of incoming activities, by e-mail address or id.

use gleaner_http::database::Error as Database;
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

use super::{Channels, Result};

impl Channels {
    /// The owner's id, or what is wrong with the address, with suggestions for the one that was meant.
    pub(super) async fn resolve_owner(&self, client: &impl GenericClient, owner: &str) -> Result<Result<i64, String>> {
        let id: Option<i64> = owner.trim().parse().ok();
        let rows = client
            .query_typed(
                "select s.id from public.sales as s where s.id = $1 or lower(s.email::text) = lower($2) order by s.id limit 20",
                &[(&id, Type::INT8), (&owner.trim(), Type::TEXT)],
            )
            .await
            .map_err(Database::doing("look for the owner"))?;
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        match ids.as_slice() {
            [one] => Ok(Ok(*one)),
            [] => Ok(Err(format!("no row of sales has the address {owner:?}; {}", self.near(client, owner).await?))),
            many => Ok(Err(format!("several in sales have the address {owner:?}; say which by id: {many:?}"))),
        }
    }

    async fn near(&self, client: &impl GenericClient, wanted: &str) -> Result<String> {
        let rows = client
            .query_typed("select s.email::text from public.sales as s where s.email is not null order by s.id limit 1000", &[])
            .await
            .map_err(Database::doing("list the owners"))?;
        let mut known: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        known.sort_by_cached_key(|email| distance(&wanted.to_lowercase(), &email.to_lowercase()));
        known.truncate(5);
        Ok(match known.as_slice() {
            [] => "sales is empty: add the person there first".into(),
            some => format!("nearest are: {}", some.join(", ")),
        })
    }
}

/// The number of letters that differ (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut costs: Vec<usize> = (0..=other.len()).collect();
    for (row, a) in one.chars().enumerate() {
        let mut diagonal = row;
        costs[0] = row + 1;
        for (column, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = costs[column + 1];
            costs[column + 1] = replaced.min(diagonal + 1).min(costs[column] + 1);
        }
    }
    costs[other.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distance_counts_letters() {
        assert_eq!([distance("", "abc"), distance("ada@x", "ada@x"), distance("kitten", "sitting")], [3, 0, 3]);
    }
}
