//! The table of errors, row by row, for those that no other file tests.

use anyhow::Result;
use http::Method;
use serde_json::json;

use crate::rest::world::world;

#[tokio::test]
async fn unknown_names_have_their_own_codes() -> Result<()> {
    let world = world().await?.with_things().await?;
    for (path, status, code, message) in [
        ("/nope", 404, "PGRST205", "Could not find the table 'public.nope' in the schema cache"),
        ("/things?select=id,nope", 400, "42703", "column things.nope does not exist"),
        ("/things?nope=eq.1", 400, "42703", "column things.nope does not exist"),
        ("/things?order=nope", 400, "42703", "column things.nope does not exist"),
        ("/things?select=size::nope", 400, "42704", "type \"nope\" does not exist"),
        ("/things/1", 404, "PGRST125", "Invalid path specified in request URL"),
        ("", 404, "PGRST125", "Invalid path specified in request URL"),
        ("/rpc", 404, "PGRST205", "Could not find the table 'public.rpc' in the schema cache"),
        ("/rpc/", 404, "PGRST125", "Invalid path specified in request URL"),
        ("/rpc/a/b", 404, "PGRST125", "Invalid path specified in request URL"),
        ("/pg_class", 404, "PGRST205", "Could not find the table 'public.pg_class' in the schema cache"),
        ("/things%22%20--", 404, "PGRST205", "Could not find the table 'public.things\" --' in the schema cache"),
    ] {
        assert_eq!(world.get(path).refused(status).await?, (code.to_owned(), message.to_owned()), "{path}");
    }
    let message = "Could not find the 'nope' column of 'things' in the schema cache";
    assert_eq!(world.post("/things", json!({"nope": 1})).refused(400).await?, ("PGRST204".into(), message.into()));
    assert_eq!(world.patch("/things?id=eq.1", json!({"nope": 1})).refused(400).await?, ("PGRST204".into(), message.into()));
    assert_eq!(world.post("/things?columns=nope", json!([{"name": "a"}])).refused(400).await?, ("PGRST204".into(), message.into()));
    Ok(())
}

#[tokio::test]
async fn errors_of_the_database_keep_their_code() -> Result<()> {
    let world = world().await?.with_things().await?;
    let (code, message) = world.get("/things?code=eq.x").refused(400).await?;
    assert_eq!((code.as_str(), message.as_str()), ("22P02", "invalid input syntax for type uuid: \"x\""));
    for path in [
        "/things?id=eq.one",
        "/things?id=in.(1,two)",
        "/things?mood=eq.merry",
        "/things?data=cs.{",
        "/things?data->a=eq.{",
        "/things?tags=cs.x",
    ] {
        assert_eq!(world.get(path).refused(400).await?.0, "22P02", "{path}");
    }
    for (path, code) in [
        ("/things?made_at=gt.yesterday-ish", "22007"),
        ("/things?id=eq.99999999999999999999", "22003"),
        ("/things?name=eq.%00", "22021"),
        ("/things?name=match.(", "2201B"),
        ("/things?data=gt.1&size=eq.1.5", "22P02"),
    ] {
        assert_eq!(world.get(path).refused(400).await?.0, code, "{path}");
    }
    assert_eq!(world.get("/things?size=like.x").refused(404).await?.0, "42883");
    let answer = world.post("/things", json!({"id": 1})).send().await?;
    assert_eq!((answer.status.as_u16(), &answer.error()["code"]), (409, &json!("23505")));
    assert_eq!(answer.error()["details"], "Key (id)=(1) already exists.");
    for (body, status, code) in [
        (json!({"box_id": 99}), 409, "23503"),
        (json!({"name": null}), 400, "23502"),
        (json!({"size": 5000}), 400, "23514"),
        (json!({"size": "x"}), 400, "22P02"),
        (json!({"name": "a\u{0}b"}), 400, "22P05"),
        (json!({"odd": "x"}), 400, "428C9"),
    ] {
        assert_eq!(world.post("/things", body.clone()).refused(status).await?.0, code, "{body}");
    }
    assert_eq!(world.delete("/boxes?id=eq.1").refused(409).await?.0, "23503");
    Ok(())
}

#[tokio::test]
async fn schemas_and_media_types_we_do_not_have_are_refused() -> Result<()> {
    let world = world().await?.with_things().await?;
    let answer = world.get("/things").header("accept-profile", "auth").send().await?;
    assert_eq!(answer.status, 406);
    let expected = json!({"code": "PGRST106", "message": "Invalid schema: auth", "details": null,
        "hint": "Only the following schemas are exposed: public, gleaner"});
    assert_eq!(answer.error(), expected);
    assert_eq!(world.post("/things", json!({})).header("content-profile", "pg_catalog").refused(406).await?.0, "PGRST106");
    assert_eq!(world.get("/things?limit=1").header("accept-profile", "public").expect(200).await?.as_array().map(Vec::len), Some(1));
    assert_eq!(world.get("/things").header("accept-profile", "gleaner").refused(404).await?.0, "PGRST205");
    let jobs = world.get("/jobs?select=id").header("accept-profile", "gleaner").send().await?;
    assert_eq!((jobs.status.as_u16(), jobs.header("content-profile"), jobs.text.as_str()), (200, "gleaner", "[]"));
    for accept in ["text/csv", "application/geo+json", "application/vnd.pgrst.plan+json", "application/json;nulls=stripped"] {
        let (code, message) = world.get("/things").header("accept", accept).refused(406).await?;
        assert_eq!((code.as_str(), message), ("PGRST107", format!("None of these media types are available: {accept}")));
    }
    Ok(())
}

#[tokio::test]
async fn methods_we_do_not_have_are_refused() -> Result<()> {
    let world = world().await?.with_things().await?;
    assert_eq!(
        world.call(Method::PUT, "/things?id=eq.1").json(&json!({})).refused(405).await?,
        ("PGRST117".into(), "Unsupported HTTP method: PUT".into())
    );
    assert_eq!(world.call(Method::DELETE, "/rpc/x").refused(405).await?.0, "PGRST101");
    Ok(())
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_stopped() -> Result<()> {
    let mut settings = gleaner_supabase::rest::Settings::default();
    settings.anon.statement_timeout = Some(std::time::Duration::from_millis(50));
    let world = crate::rest::world::world_with(settings).await?;
    world.run("create function slow() returns void language sql as 'select pg_sleep(0.5)'").await?;
    assert_eq!(world.post("/rpc/slow", json!({})).anon().refused(500).await?.0, "57014");
    world.post("/rpc/slow", json!({})).expect(204).await?;
    Ok(())
}

#[tokio::test]
async fn a_database_that_is_away_or_busy_is_said_to_be() -> Result<()> {
    let settings = gleaner_supabase::rest::Settings { acquire_within: std::time::Duration::from_millis(100), ..Default::default() };
    let world = crate::rest::world::world_with(settings).await?.with_things().await?;
    let mut busy = Vec::new();
    for _ in 0..8 {
        busy.push(world.pool.get().await?);
    }
    assert_eq!(world.get("/things").refused(504).await?.0, "PGRST003");
    drop(busy);
    world.get("/things").expect(200).await?;
    // All connections are closed and no new one is accepted.
    let postgres = world.database.url.replace(&world.database.name, "postgres");
    let keeper = gleaner::connect(&postgres).await?;
    let name = &world.database.name;
    keeper.batch_execute(&format!("alter database {name} with allow_connections false")).await?;
    keeper.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", &[name]).await?;
    let answer = loop {
        // Connections notice that they are closed one after the other.
        let answer = world.get("/things").send().await?;
        if answer.error()["code"] == "PGRST001" {
            break answer;
        }
        assert_eq!(answer.status, 503, "{}", answer.text);
    };
    assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, "1"));
    keeper.batch_execute(&format!("alter database {name} with allow_connections true")).await?;
    world.get("/things").expect(200).await?;
    Ok(())
}
