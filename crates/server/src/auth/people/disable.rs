//! Somebody leaves: no more sign-in, and the work goes on without them.

use gleaner::view::View;
use gleaner::{Acts, Error, registry};
use serde_json::{Value, json};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient, Transaction};
use uuid::Uuid;

use super::{Trouble, change, find};

/// What disabling did, per queue.
#[derive(Debug, Default)]
pub struct Disabled {
    /// Rows the person held, given back.
    pub released: Vec<(String, usize)>,
    /// Unfinished rows that were the person's and are another's now.
    pub assigned: Vec<(String, usize)>,
    /// Unfinished rows that still are the person's.
    pub left: Vec<(String, usize)>,
}

/// Ends the person's sessions, gives back what they hold and, where told to whom, hands over what is theirs; all or nothing.
/// Access tokens already given out are refused from the commit on.
pub async fn disable(client: &mut Client, email: &str, assign_to: Option<&str>) -> Result<Disabled, Trouble> {
    let transaction = client.transaction().await.map_err(Error::doing("begin"))?;
    let (user, _) = find(&transaction, email).await?;
    let heir = match assign_to {
        Some(email) => Some(find(&transaction, email).await?.0),
        None => None,
    };
    if heir == Some(user) {
        return Err(Trouble::Refused("work cannot be handed to the one who leaves".into()));
    }
    change(&transaction, user, &json!({"ban": "forever"})).await?;
    set_disabled(&transaction, user, true).await?;
    let mut done = Disabled::default();
    for entry in registry::list(&transaction).await? {
        let queue = Queue::of(&transaction, &entry.name).await?;
        note(&mut done.released, &entry.name, queue.release(&transaction, user).await?);
        if let Some(owner) = queue.owner_of(&transaction, user).await? {
            let heir = match heir {
                Some(heir) => Some(
                    queue
                        .owner_of(&transaction, heir)
                        .await?
                        .ok_or_else(|| Trouble::Refused(format!("{} owns no work in {}", assign_to.unwrap_or_default(), entry.name)))?,
                ),
                None => None,
            };
            let rows = queue.assign(&transaction, &owner, heir.as_deref()).await?;
            note(if heir.is_some() { &mut done.assigned } else { &mut done.left }, &entry.name, rows);
        }
    }
    transaction.commit().await.map_err(Error::doing("commit"))?;
    Ok(done)
}

/// Lets the person sign in again. What was handed over stays with the others.
pub async fn enable(client: &mut Client, email: &str) -> Result<(), Trouble> {
    let transaction = client.transaction().await.map_err(Error::doing("begin"))?;
    let (user, _) = find(&transaction, email).await?;
    change(&transaction, user, &json!({"ban": "none"})).await?;
    set_disabled(&transaction, user, false).await?;
    Ok(transaction.commit().await.map_err(Error::doing("commit"))?)
}

async fn set_disabled(transaction: &Transaction<'_>, user: Uuid, disabled: bool) -> Result<(), Trouble> {
    transaction
        .query_typed("update public.sales set disabled = $2 where user_id = $1", &[(&user, Type::UUID), (&disabled, Type::BOOL)])
        .await
        .map_err(Error::doing("disable the owner"))?;
    Ok(())
}

fn note(list: &mut Vec<(String, usize)>, queue: &str, rows: usize) {
    if rows > 0 {
        list.push((queue.to_owned(), rows));
    }
}

/// A queue, its acts, and the words to find a person's rows by.
struct Queue {
    acts: Acts,
    context: Value,
    table: String,
}

impl Queue {
    async fn of(client: &impl GenericClient, name: &str) -> Result<Self, Trouble> {
        let view = View::of(client, name).await?;
        let acts = Acts::of(client, name).await?;
        let context =
            serde_json::to_value(&view.plan().context).map_err(|error| Error::Other(format!("read the plan of {name}: {error}")))?;
        Ok(Self { table: acts.table().to_owned(), acts, context })
    }

    fn word(&self, role: &str, part: &str) -> &str {
        self.context[role][part].as_str().unwrap_or_default()
    }

    /// The acts for a row: within its tenant, where there are tenants.
    async fn acts(&self, client: &impl GenericClient, tenant: Option<String>) -> Result<Acts, Trouble> {
        Ok(match tenant {
            Some(tenant) => self.acts.clone().within(client, tenant).await?,
            None => self.acts.clone(),
        })
    }

    fn tenant(&self) -> String {
        let column = self.word("tenant", "column");
        if column.is_empty() { "null::text".into() } else { format!("q.{column}::text") }
    }

    /// Gives back what any sign-in of the user holds.
    async fn release(&self, client: &impl GenericClient, user: Uuid) -> Result<usize, Trouble> {
        let sql = format!(
            "select q.{key}::text, q.{lease}, {tenant} from {table} as q where q.{status} in ({held}) and q.{session} like $1 order by 1",
            key = self.word("key", "column"),
            lease = self.word("col", "lease"),
            tenant = self.tenant(),
            table = self.table,
            status = self.word("status", "column"),
            held = self.word("status", "held"),
            session = self.word("col", "session"),
        );
        let rows = client.query_typed(&sql, &[(&format!("{user}/%"), Type::TEXT)]).await.map_err(Error::doing("find held rows"))?;
        let mut released = 0;
        for row in &rows {
            let (key, lease): (String, i64) = (row.get(0), row.get(1));
            let answers = self.acts(client, row.get(2)).await?.release(client, &[(key.as_str(), lease)]).await?;
            released += answers.iter().filter(|answer| answer.outcome == gleaner::Outcome::Done).count();
        }
        Ok(released)
    }

    /// The user as an owner of this queue's work; none where owners are no users, or this user owns none.
    async fn owner_of(&self, client: &impl GenericClient, user: Uuid) -> Result<Option<String>, Trouble> {
        let (table, column) = (self.word("owner", "table"), self.word("owner", "user"));
        if table.is_empty() || column.is_empty() {
            return Ok(None);
        }
        let sql = format!("select o.{}::text from {table} as o where o.{column} = $1", self.word("owner", "key"));
        let rows = client.query_typed(&sql, &[(&user, Type::UUID)]).await.map_err(Error::doing("find the owner's row"))?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// Hands the owner's unfinished rows over; without an heir only counts them.
    async fn assign(&self, client: &impl GenericClient, owner: &str, heir: Option<&str>) -> Result<usize, Trouble> {
        let sql = format!(
            "select q.{key}::text, {tenant} from {table} as q
             where q.{owner}::text = $1 and q.{status} in ({waiting}, {held}) and q.{due} is not null order by 1",
            key = self.word("key", "column"),
            tenant = self.tenant(),
            table = self.table,
            owner = self.word("owner", "column"),
            status = self.word("status", "column"),
            waiting = self.word("status", "waiting"),
            held = self.word("status", "held"),
            due = self.word("col", "due"),
        );
        let rows = client.query_typed(&sql, &[(&owner, Type::TEXT)]).await.map_err(Error::doing("find the owner's rows"))?;
        let Some(heir) = heir else { return Ok(rows.len()) };
        let mut assigned = 0;
        for row in &rows {
            let key: String = row.get(0);
            let answers = self.acts(client, row.get(1)).await?.assign(client, &[key.as_str()], Some(heir)).await?;
            assigned += answers.iter().filter(|answer| answer.outcome == gleaner::Outcome::Done).count();
        }
        Ok(assigned)
    }
}
