//! The first start, and databases whose users belong to another platform.

use anyhow::Result;
use futures_util::future::join_all;
use gleaner_postgres::testing;
use gleaner_supabase::access::Access;
use gleaner_supabase::auth::{Auth, Settings, first_administrator, people};

use crate::auth::support::{SECRET, world};

#[tokio::test]
async fn the_first_start_makes_one_administrator_however_many_start() -> Result<()> {
    let world = world().await?;
    let pool = gleaner::pool(&world.database.url, 8)?;
    let made = join_all((0..6).map(|_| first_administrator(&pool))).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut told: Vec<people::Credentials> = made.into_iter().flatten().collect();
    assert_eq!(told.len(), 1, "credentials are told once");
    let admin = told.remove(0);
    assert_eq!(world.sign_in(&admin.email, admin.password.reveal()).await.status, 200);
    assert_eq!(world.count("select count(*) from sales where administrator").await?, 1);
    assert!(first_administrator(&pool).await?.is_none(), "never again");
    Ok(())
}

#[tokio::test]
async fn where_a_user_exists_no_administrator_is_created() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    assert!(first_administrator(&gleaner::pool(&world.database.url, 1)?).await?.is_none());
    Ok(())
}

/// On a Supabase project the platform manages the users: the server creates nothing, answers nothing and changes nothing.
#[tokio::test]
async fn users_of_a_platform_are_left_alone() -> Result<()> {
    let database = testing::server().empty_database().await?;
    let client = gleaner::connect(&database.url).await?;
    client.batch_execute("create schema auth; create table auth.users (id uuid primary key, email text)").await?;
    gleaner::migrate::migrate(&database.url, &|_| {}).await?;
    let tables: String = client
        .query_one(
            "select string_agg(c.relname, ' ' order by 1) from pg_class c where relnamespace = 'auth'::regnamespace and relkind = 'r'",
            &[],
        )
        .await?
        .get(0);
    assert_eq!(tables, "users");
    let pool = gleaner::pool(&database.url, 2)?;
    assert!(Auth::open(pool.clone(), Access::new(SECRET, "test")?, Settings::new("http://x")).await?.is_none());
    assert!(first_administrator(&pool).await?.is_none());
    for trouble in [
        people::add(&client, "ada@example.com", None, true).await.err(),
        people::list(&client).await.err(),
        people::invite(&client, "ada@example.com", true, "http://x").await.err(),
        people::reset(&client, "ada@example.com", "http://x").await.err(),
    ] {
        assert!(matches!(trouble, Some(people::Trouble::Elsewhere)), "{trouble:?}");
    }
    Ok(())
}
