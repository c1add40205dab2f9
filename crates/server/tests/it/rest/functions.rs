//! `/rpc`.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::rest::world::{World, world};

async fn with_functions() -> Result<World> {
    let world = world().await?.with_things().await?;
    world.run(include_str!("functions.sql")).await?;
    Ok(world)
}

#[tokio::test]
async fn what_a_function_returns_decides_the_form_of_the_answer() -> Result<()> {
    let world = with_functions().await?;
    for (path, body, expected) in [
        ("add", json!({"a": 1, "b": 2}), "3"),
        ("add", json!({"a": 1}), "11"),
        ("nobody", json!({}), "null"),
        ("said", json!({"what": "a \"b\""}), r#""a \"b\"""#),
        ("echo", json!({"v": {"x": [1]}}), r#"{"x": [1]}"#),
        ("two", json!({}), "[1,2]"),
        ("no_things", json!({}), "[]"),
        ("pairs", json!({"n": 2}), r#"[{"k":1,"v":"1"},{"k":2,"v":"2"}]"#),
        ("pairs", json!({"n": 0}), "[]"),
        ("single_column", json!({}), r#"[{"k":1}]"#),
        ("parts", json!({}), r#"{"x":1,"y":null}"#),
        ("one_thing", json!({"p_id": 99}), "null"),
        ("total", json!({"numbers": [1, 2, 3]}), "6"),
        ("unlike", json!({"b": "1"}), r#""b""#),
        ("Odd%20name", json!({"Odd arg": "x"}), r#""x""#),
    ] {
        let answer = world.post(&format!("/rpc/{path}"), body).send().await?;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, expected), "{path}");
        assert_eq!(answer.header("content-type"), "application/json; charset=utf-8", "{path}");
    }
    let one = world.post("/rpc/one_thing", json!({"p_id": 1})).expect(200).await?;
    assert_eq!(one["name"], "anvil");
    let answer = world.post("/rpc/nothing", json!({})).send().await?;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""));
    // A request without a body counts as one without arguments.
    assert_eq!(world.call(Method::POST, "/rpc/two").expect(200).await?, json!([1, 2]));
    assert_eq!(world.post("/rpc/two", json!([])).refused(400).await?.0, "PGRST102");
    Ok(())
}

#[tokio::test]
async fn rows_of_a_function_are_chosen_filtered_and_counted() -> Result<()> {
    let world = with_functions().await?;
    let rows = world.post("/rpc/all_things?select=id,boxes!box_id(name)&size=gt.1&order=id.desc&limit=1", json!({})).expect(200).await?;
    assert_eq!(rows, json!([{"id": 2, "boxes": {"name": "red"}}]));
    let answer = world.post("/rpc/all_things?select=id&limit=1", json!({})).prefer("count=exact").send().await?;
    assert_eq!((answer.status.as_u16(), answer.header("content-range")), (206, "0-0/3"));
    let row = world.post("/rpc/all_things?select=n:name&id=eq.1", json!({})).single().expect(200).await?;
    assert_eq!(row, json!({"n": "anvil"}));
    assert_eq!(world.post("/rpc/all_things", json!({})).single().refused(406).await?.0, "PGRST116");
    assert_eq!(world.post("/rpc/pairs?nope=eq.1", json!({"n": 1})).refused(400).await?.0, "42703");
    // A call that breaks the one-row rule is rolled back here too.
    assert_eq!(world.post("/rpc/make?id=eq.0", json!({"p_name": "x"})).single().refused(406).await?.0, "PGRST116");
    assert_eq!(world.text("select count(*)::text from things where name = 'x'").await?.as_deref(), Some("0"));
    let answer = world.post("/rpc/make", json!({"p_name": "x"})).prefer("return=minimal").send().await?;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""));
    Ok(())
}

#[tokio::test]
async fn a_function_that_only_reads_can_be_got() -> Result<()> {
    let world = with_functions().await?;
    assert_eq!(world.get("/rpc/add?a=1&b=2").expect(200).await?, json!(3));
    assert_eq!(world.get("/rpc/said?what=eq.x").expect(200).await?, json!("eq.x"), "an argument is no filter");
    assert_eq!(world.get("/rpc/total?numbers={1,2}").expect(200).await?, json!(3));
    assert_eq!(world.get("/rpc/total?numbers=1&numbers=4").expect(200).await?, json!(5));
    assert_eq!(world.get("/rpc/add?a=1&a=2&b=0").expect(200).await?, json!(2));
    assert_eq!(world.get("/rpc/pairs?n=3&k=gte.2&select=k&order=k.desc").expect(200).await?, json!([{"k": 3}, {"k": 2}]));
    assert_eq!(world.get("/rpc/add?a=one").refused(400).await?.0, "22P02");
    let answer = world.call(Method::HEAD, "/rpc/pairs?n=3").prefer("count=exact").send().await?;
    assert_eq!((answer.status.as_u16(), answer.header("content-range"), answer.text.as_str()), (200, "0-2/3", ""));
    assert_eq!(world.get("/rpc/make?p_name=x").refused(405).await?.0, "25006");
    assert_eq!(world.call(Method::PATCH, "/rpc/add").json(&json!({})).refused(405).await?.0, "PGRST101");
    Ok(())
}

#[tokio::test]
async fn a_function_is_found_by_the_names_of_its_arguments() -> Result<()> {
    let world = with_functions().await?;
    for (path, body, message) in [
        ("nope", json!({}), "Could not find the function public.nope without parameters in the schema cache"),
        ("nope", json!({"a": 1, "b": 2}), "Could not find the function public.nope(a, b) in the schema cache"),
        ("add", json!({"b": 2}), "Could not find the function public.add(b) in the schema cache"),
        ("add", json!({"a": 1, "z": 2}), "Could not find the function public.add(a, z) in the schema cache"),
    ] {
        assert_eq!(world.post(&format!("/rpc/{path}"), body).refused(404).await?, ("PGRST202".to_owned(), message.to_owned()));
    }
    assert_eq!(world.post("/rpc/twice", json!({"a": 1})).refused(300).await?.0, "PGRST203");
    assert_eq!(world.get("/rpc/add?a=1&zz=3").refused(404).await?.0, "PGRST202");
    // Trigger functions cannot be called.
    world.run("create function fires() returns trigger language plpgsql as 'begin return new; end'").await?;
    assert_eq!(world.post("/rpc/fires", json!({})).refused(404).await?.0, "PGRST202");
    Ok(())
}

#[tokio::test]
async fn what_a_function_raises_reaches_the_program() -> Result<()> {
    let world = with_functions().await?;
    for (code, status) in [("P0001", 400), ("PT402", 402), ("PT999", 999), ("22000", 400), ("40001", 500), ("53300", 503), ("42501", 403)] {
        let answer = world.post("/rpc/fails", json!({"code": code})).send().await?;
        assert_eq!(answer.status.as_u16(), status, "{code}");
        assert_eq!(answer.error(), json!({"code": code, "message": "no way", "details": "because", "hint": "do not"}));
    }
    Ok(())
}

/// All rows that a claim has taken must reach the caller, even if they are more than a page.
#[tokio::test]
async fn rows_of_a_function_that_writes_are_not_cut() -> Result<()> {
    let mut settings = gleaner_supabase::rest::Settings::default();
    settings.service_role.max_rows = Some(2);
    let world = crate::rest::world::world_with(settings).await?.with_things().await?;
    world.run("create function touch_all() returns setof things language sql as 'update things set size = 1 returning *'; create function see_all() returns setof things stable language sql as 'select * from things'").await?;
    assert_eq!(world.post("/rpc/touch_all", json!({})).expect(200).await?.as_array().map(Vec::len), Some(3));
    assert_eq!(world.post("/rpc/see_all", json!({})).expect(200).await?.as_array().map(Vec::len), Some(2));
    Ok(())
}

/// The claim functions in `docs/reference/systems`, as client programs call them.
#[tokio::test]
async fn the_systems_claim_functions_work_over_rest() -> Result<()> {
    let world = world().await?;
    let (owner, user) = world.person("anna", true).await?;
    let token = world.token(&user);
    assert_eq!(world.post("/rpc/claim_stale_activity", json!({})).signed_in(&token).expect(200).await?, json!([]));
    let made = json!({"type": "note", "sales_id": owner, "raw_data": {"source_type": "text", "content": "hello"}});
    let made = world.post("/activities?select=id", made).returning().single().expect(201).await?;
    let claimed = world.post("/rpc/claim_next_pending_activity", json!({"p_agent_sales_id": owner})).signed_in(&token).expect(200).await?;
    assert_eq!(claimed.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&claimed[0]["id"], &claimed[0]["raw_data"]["content"], &claimed[0]["is_global"]),
        (&made["id"], &json!("hello"), &json!(false))
    );
    assert_eq!(
        world.post("/rpc/claim_next_pending_activity", json!({"p_agent_sales_id": owner})).signed_in(&token).expect(200).await?,
        json!([])
    );
    let id = made["id"].as_str().unwrap();
    let row =
        world.get(&format!("/activities?id=eq.{id}&select=processing_status,locked_by")).signed_in(&token).single().expect(200).await?;
    assert_eq!(row, json!({"processing_status": "processing", "locked_by": user}));
    let done = json!({"processing_status": "completed", "processed_data": {"summary": "x"}, "locked_by": null, "locked_at": null});
    let row = world.patch(&format!("/activities?id=eq.{id}"), done).signed_in(&token).returning().single().expect(200).await?;
    assert_eq!((&row["processing_status"], &row["locked_by"]), (&json!("completed"), &Value::Null));
    assert_eq!(world.post("/rpc/unlock_stale_locks", json!({})).expect(200).await?, json!(0));
    assert_eq!(world.post("/rpc/fn_claim_next_dumps", json!({"p_worker_id": "w", "p_limit": 5})).expect(200).await?, json!([]));
    Ok(())
}

#[tokio::test]
async fn a_function_may_choose_the_status_and_headers_of_its_response() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create function teapot() returns text language plpgsql as $$ begin
                 perform set_config('response.status', '418', true),
                         set_config('response.headers', '[{\"X-Pot\": \"tea\"}, {\"Content-Type\": \"text/plain\"}]', true);
                 return 'short'; end $$;
             create function confused() returns text language plpgsql as $$ begin
                 perform set_config('response.headers', '{}', true); return ''; end $$;
             create function refuses() returns void language plpgsql as $$ begin
                 raise sqlstate 'PGRST' using message = '{\"code\": \"123\", \"message\": \"Payment required\", \"hint\": \"pay\"}',
                                             detail = '{\"status\": 402}'; end $$;
             create function mumbles() returns void language plpgsql as $$ begin raise sqlstate 'PGRST' using message = 'x'; end $$",
        )
        .await?;
    let answer = world.post("/rpc/teapot", json!({})).send().await?;
    assert_eq!((answer.status.as_u16(), answer.header("x-pot"), answer.header("content-type")), (418, "tea", "text/plain"));
    assert_eq!(world.post("/rpc/confused", json!({})).refused(500).await?.0, "PGRST111");
    assert_eq!(world.post("/rpc/refuses", json!({})).refused(402).await?, ("123".to_owned(), "Payment required".to_owned()));
    assert_eq!(world.post("/rpc/mumbles", json!({})).refused(500).await?.0, "PGRST121");
    Ok(())
}

#[tokio::test]
async fn the_only_argument_without_a_name_is_the_whole_body() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create function keep(jsonb) returns jsonb immutable language sql as 'select $1';
             create function raw(json) returns text immutable language sql as 'select $1::text';
             create function hear(text) returns text immutable language sql as 'select upper($1)';
             create function either(jsonb) returns text immutable language sql as $$ select 'body' $$;
             create function either(a int) returns text immutable language sql as $$ select 'named' $$",
        )
        .await?;
    assert_eq!(world.post("/rpc/keep", json!({"a": {"b": 1}})).expect(200).await?, json!({"a": {"b": 1}}));
    assert_eq!(world.post("/rpc/keep", json!([1, 2])).expect(200).await?, json!([1, 2]));
    assert_eq!(world.post("/rpc/raw", json!({"a": 1})).expect(200).await?, json!(r#"{"a":1}"#));
    let text = world.call(Method::POST, "/rpc/hear").header("content-type", "text/plain").raw("'; drop table x; --");
    assert_eq!(text.expect(200).await?, json!("'; DROP TABLE X; --"));
    assert_eq!(world.post("/rpc/either", json!({"a": 1})).expect(200).await?, json!("named"));
    assert_eq!(world.post("/rpc/either", json!({"b": 1})).expect(200).await?, json!("body"));
    assert_eq!(world.post("/rpc/hear", json!({"a": 1})).refused(404).await?.0, "PGRST202");
    let broken = world.call(Method::POST, "/rpc/keep").header("content-type", "application/json").raw("{");
    assert_eq!(broken.refused(400).await?.0, "22P02");
    // Text is for functions.
    assert_eq!(world.call(Method::POST, "/sales").header("content-type", "text/plain").raw("x").refused(400).await?.0, "PGRST102");
    Ok(())
}

#[tokio::test]
async fn a_single_value_counts_as_one_row() -> Result<()> {
    let world = with_functions().await?;
    let answer = world.post("/rpc/add", json!({"a": 1})).prefer("count=exact").send().await?;
    assert_eq!((answer.status.as_u16(), answer.header("content-range"), answer.text.as_str()), (200, "0-0/1", "11"));
    assert_eq!(world.post("/rpc/two", json!({})).prefer("count=exact").send().await?.header("content-range"), "0-1/2");
    Ok(())
}

#[tokio::test]
async fn an_argument_may_have_the_name_of_a_column_that_is_filtered() -> Result<()> {
    let world = with_functions().await?;
    world.run("create function below(id int) returns setof things stable language sql as 'select * from things t where t.id < $1'").await?;
    assert_eq!(world.get("/rpc/below?id=3&id=gt.1&select=id").expect(200).await?, json!([{"id": 2}]));
    assert_eq!(world.get("/rpc/total?numbers=7").expect(200).await?, json!(7), "one value for a list");
    assert_eq!(world.post("/rpc/add?columns=a", json!({"a": 1, "extra": 2})).expect(200).await?, json!(11));
    Ok(())
}

#[tokio::test]
async fn an_error_that_a_function_wrote_has_its_headers() -> Result<()> {
    let world = world().await?;
    world
        .run(
            r#"create function pays() returns void language plpgsql as $$ begin
                 raise sqlstate 'PGRST' using message = '{"code": "402", "message": "pay"}',
                     detail = '{"status": 402, "headers": {"X-Price": "9"}}'; end $$"#,
        )
        .await?;
    let answer = world.post("/rpc/pays", json!({})).send().await?;
    assert_eq!((answer.status.as_u16(), answer.header("x-price")), (402, "9"));
    Ok(())
}
