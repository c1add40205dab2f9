//! Disabling a person: they can no longer sign in, and their work goes on without them.

use gleaner::plan::shape::{Owner, Shape};
use gleaner::view::View;
use gleaner::{Acts, Error, Held, registry};
use gleaner_supabase::auth::people::{self, change, find};
use serde_json::json;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient, Transaction};
use uuid::Uuid;

/// What went wrong, as a message for the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    #[error(transparent)]
    User(#[from] people::Trouble),
    #[error(transparent)]
    Queue(#[from] Error),
}

/// What disabling did, per queue.
#[derive(Debug, Default)]
pub struct Disabled {
    /// Rows that the person held, released.
    pub released: Vec<(String, usize)>,
    /// Unfinished rows that belonged to the person and now belong to another.
    pub assigned: Vec<(String, usize)>,
    /// Unfinished rows that still belong to the person.
    pub left: Vec<(String, usize)>,
}

/// Ends the person's sessions, releases the rows they hold and, if `assign_to` is given, assigns their unfinished rows to
/// that person. Either everything happens or nothing. Access tokens already issued are refused from the commit on.
pub async fn disable(client: &mut Client, email: &str, assign_to: Option<&str>) -> Result<Disabled, Trouble> {
    let transaction = client.transaction().await.map_err(Error::doing("begin"))?;
    let (user, _) = find(&transaction, email).await?;
    let heir = match assign_to {
        Some(email) => Some(find(&transaction, email).await?.0),
        None => None,
    };
    if heir == Some(user) {
        return Err(people::Trouble::Refused("work cannot be handed to the one who leaves".into()).into());
    }
    change(&transaction, user, &json!({"ban": "forever"})).await?;
    set_disabled(&transaction, user, true).await?;
    let mut done = Disabled::default();
    for entry in registry::list(&transaction).await? {
        let queue = Queue::of(&transaction, &entry.name).await?;
        note(&mut done.released, &entry.name, queue.release(&transaction, user).await?);
        if let Some(owner) = queue.owner_of(&transaction, user).await? {
            let heir = match heir {
                Some(heir) => Some(queue.owner_of(&transaction, heir).await?.ok_or_else(|| {
                    people::Trouble::Refused(format!("{} owns no work in {}", assign_to.unwrap_or_default(), entry.name))
                })?),
                None => None,
            };
            let rows = queue.assign(&transaction, &owner, heir.as_deref()).await?;
            note(if heir.is_some() { &mut done.assigned } else { &mut done.left }, &entry.name, rows);
        }
    }
    transaction.commit().await.map_err(Error::doing("commit"))?;
    Ok(done)
}

/// Lets the person sign in again. Rows that were reassigned stay with their new owners.
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

/// A queue, its acts, and the SQL to find a person's rows by.
struct Queue {
    acts: Acts,
    shape: Shape,
}

impl Queue {
    async fn of(client: &impl GenericClient, name: &str) -> Result<Self, Trouble> {
        let view = View::of(client, name).await?;
        let acts = Acts::of(client, name).await?;
        Ok(Self { acts, shape: view.plan().shape.clone() })
    }

    /// The acts for a row: within its tenant, where there are tenants.
    async fn acts(&self, client: &impl GenericClient, tenant: Option<String>) -> Result<Acts, Trouble> {
        Ok(match tenant {
            Some(tenant) => self.acts.clone().within(client, tenant).await?,
            None => self.acts.clone(),
        })
    }

    fn tenant(&self) -> String {
        self.shape.tenant.as_ref().map_or_else(|| "null::text".into(), |tenant| format!("q.{}::text", tenant.column))
    }

    /// Releases the rows held by any session of the user.
    async fn release(&self, client: &impl GenericClient, user: Uuid) -> Result<usize, Trouble> {
        let sql = format!(
            "select q.{key}::text, q.{lease}, {tenant} from {table} as q where q.{status} in ({held}) and q.{session} like $1 order by 1",
            key = self.shape.key.column,
            lease = self.shape.col.lease,
            tenant = self.tenant(),
            table = self.shape.table,
            status = self.shape.status.column,
            held = self.shape.status.held,
            session = self.shape.col.session,
        );
        let rows = client.query_typed(&sql, &[(&format!("{user}/%"), Type::TEXT)]).await.map_err(Error::doing("find held rows"))?;
        let mut released = 0;
        for row in &rows {
            let (key, lease): (String, i64) = (row.get(0), row.get(1));
            let answers = self.acts(client, row.get(2)).await?.release(client, &[Held::new(key.as_str(), lease)]).await?;
            released += answers.iter().filter(|answer| answer.outcome == gleaner::Outcome::Done).count();
        }
        Ok(released)
    }

    /// The user as an owner of this queue's rows. None where owners are not users, or where this user owns none.
    async fn owner_of(&self, client: &impl GenericClient, user: Uuid) -> Result<Option<String>, Trouble> {
        let Some(Owner { table: Some(table), key: Some(key), user: Some(column), .. }) = &self.shape.owner else { return Ok(None) };
        let sql = format!("select o.{key}::text from {table} as o where o.{column} = $1");
        let rows = client.query_typed(&sql, &[(&user, Type::UUID)]).await.map_err(Error::doing("find the owner's row"))?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// Assigns the owner's unfinished rows to the heir. Without an heir it only counts them.
    async fn assign(&self, client: &impl GenericClient, owner: &str, heir: Option<&str>) -> Result<usize, Trouble> {
        let Some(column) = self.shape.owner.as_ref().map(|o| &o.column) else { return Ok(0) };
        let sql = format!(
            "select q.{key}::text, {tenant} from {table} as q
             where q.{owner}::text = $1 and q.{status} in ({waiting}, {held}) and q.{due} is not null order by 1",
            key = self.shape.key.column,
            tenant = self.tenant(),
            table = self.shape.table,
            owner = column,
            status = self.shape.status.column,
            waiting = self.shape.status.waiting,
            held = self.shape.status.held,
            due = self.shape.col.due,
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
