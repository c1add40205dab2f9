//! Rows of other tables through a junction table, and through views.

use anyhow::Result;
use serde_json::json;

use super::world::{World, world};

/// Things and their marks, related by a junction table.
async fn marked() -> Result<World> {
    let world = world().await?.with_things().await?;
    world
        .run(
            "create table marks (id bigint primary key, word text not null);
             create table thing_marks (
                 thing_id bigint references things (id),
                 mark_id  bigint references marks (id),
                 primary key (thing_id, mark_id));
             insert into marks values (1, 'old'), (2, 'rare'), (3, 'lost');
             insert into thing_marks values (1, 1), (1, 2), (2, 2);
             grant all on marks, thing_marks to anon, authenticated, service_role",
        )
        .await?;
    Ok(world)
}

#[tokio::test]
async fn many_belong_to_many_through_a_table_in_between() -> Result<()> {
    let world = marked().await?;
    let rows = world.get("/things?select=id,marks(word)&marks.order=id&order=id").expect(200).await?;
    assert_eq!(
        rows,
        json!([{"id": 1, "marks": [{"word": "old"}, {"word": "rare"}]}, {"id": 2, "marks": [{"word": "rare"}]}, {"id": 3, "marks": []}])
    );
    let rows = world.get("/marks?select=word,things(id,boxes!box_id(name))&things.order=id&order=id").expect(200).await?;
    let red = |id: i64| json!({"id": id, "boxes": {"name": "red"}});
    assert_eq!(
        rows,
        json!([{"word": "old", "things": [red(1)]}, {"word": "rare", "things": [red(1), red(2)]}, {"word": "lost", "things": []}])
    );
    // The junction table can be embedded as well, and in the other direction.
    let rows = world.get("/things?select=id,thing_marks(mark_id,marks(word))&id=eq.2").expect(200).await?;
    assert_eq!(rows, json!([{"id": 2, "thing_marks": [{"mark_id": 2, "marks": {"word": "rare"}}]}]));
    Ok(())
}

#[tokio::test]
async fn what_belongs_through_a_table_in_between_is_filtered_limited_and_asked_for() -> Result<()> {
    let world = marked().await?;
    let rows = world.get("/things?select=id,m:marks!inner(word)&m.word=eq.rare&order=id").expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "m": [{"word": "rare"}]}, {"id": 2, "m": [{"word": "rare"}]}]));
    let rows = world.get("/things?select=id,marks!thing_marks(word)&marks.order=word.desc&marks.limit=1&id=eq.1").expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "marks": [{"word": "rare"}]}]));
    let answer = world.get("/marks?select=id,things!inner()").prefer("count=exact").send().await?;
    assert_eq!(answer.header("content-range"), "0-1/2");
    let path = "/things?id=eq.2&select=name,marks(word)";
    let row = world.patch(path, json!({"name": "ball"})).returning().single().expect(200).await?;
    assert_eq!(row, json!({"name": "ball", "marks": [{"word": "rare"}]}));
    Ok(())
}

#[tokio::test]
async fn a_junction_table_is_recognised_by_its_primary_key_and_two_of_them_by_name() -> Result<()> {
    let world = marked().await?;
    // Not every table with two foreign keys is a junction: its rows may be independent.
    world
        .run(
            "create table shelves (id bigint primary key);
             create table visits (id bigint primary key, thing_id bigint references things (id), shelf_id bigint references shelves (id));
             create table former_marks (
                 thing_id bigint references things (id),
                 mark_id  bigint references marks (id),
                 at       date,
                 primary key (thing_id, mark_id, at));
             grant all on former_marks to service_role",
        )
        .await?;
    assert_eq!(world.get("/things?select=id,shelves(id)").refused(400).await?.0, "PGRST200");
    assert_eq!(world.get("/things?select=id,things(id)").refused(400).await?.0, "PGRST200", "one key joins nobody with themselves");
    let answer = world.get("/things?select=id,marks(word)").send().await?;
    assert_eq!((answer.status.as_u16(), &answer.error()["code"]), (300, &json!("PGRST201")));
    let (details, hint) = (answer.error()["details"].to_string(), answer.error()["hint"].to_string());
    assert!(details.contains("thing_marks (many-to-many, things with marks)"), "{details}");
    assert!(hint.contains("'marks!former_marks'") && hint.contains("'marks!thing_marks'"), "{hint}");
    let rows = world.get("/things?select=id,marks!former_marks(word)&id=eq.1").expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "marks": []}]));
    Ok(())
}

#[tokio::test]
async fn the_table_in_between_and_the_one_behind_it_obey_row_security() -> Result<()> {
    let world = marked().await?;
    world.run("alter table thing_marks enable row level security; create policy shown on thing_marks to anon using (mark_id = 2)").await?;
    let marks_of_one = || world.get("/things?select=marks(word)&id=eq.1").anon();
    assert_eq!(marks_of_one().expect(200).await?, json!([{"marks": [{"word": "rare"}]}]));
    world.run("alter table marks enable row level security; create policy shown on marks to anon using (word = 'old')").await?;
    assert_eq!(marks_of_one().expect(200).await?, json!([{"marks": []}]));
    world.run("drop policy shown on thing_marks; create policy none on thing_marks to anon using (false)").await?;
    assert_eq!(world.get("/things?select=id,marks!inner()").anon().expect(200).await?, json!([]));
    world.run("revoke all on thing_marks from anon").await?;
    assert_eq!(marks_of_one().refused(401).await?, ("42501".into(), "permission denied for table thing_marks".into()));
    Ok(())
}

/// Views that show columns of `things` and `boxes` in every way.
async fn with_views() -> Result<World> {
    let world = world().await?.with_things().await?;
    world
        .run(
            "create view stock as
                 select t.id as thing, upper(t.name) as title, t.box_id as place, b.name as box_name
                 from things as t left join boxes as b on b.id = t.box_id;
             create view deep as
                 with s as (select thing, place from stock where exists (select t.spare_id from things as t))
                 select q.spot, q.thing from (select thing, place as spot from s order by 1) as q;
             create materialized view piled as select id, box_id from things;
             create view red_boxes as select name, id as number from boxes where name = 'red';
             create view doubled as select b.id, b.name from boxes as b cross join generate_series(1, 2);
             create view reckoned as select id, box_id + 0 as box_id from things;
             create view both_ways as select id, box_id from things union all select id, spare_id from things;
             create view notes as select thing_id as about, text from labels;
             grant all on all tables in schema public to anon, authenticated, service_role",
        )
        .await?;
    Ok(world)
}

#[tokio::test]
async fn a_view_belongs_where_the_columns_it_shows_belong() -> Result<()> {
    let world = with_views().await?;
    let (red, first) = (json!({"name": "red"}), "&order=thing&limit=1");
    let rows = world.get(&format!("/stock?select=thing,title,boxes(name){first}")).expect(200).await?;
    assert_eq!(rows, json!([{"thing": 1, "title": "ANVIL", "boxes": red}]));
    let rows = world.get(&format!("/stock?select=thing,in:boxes!place(name),by:place(name){first}")).expect(200).await?;
    assert_eq!(rows, json!([{"thing": 1, "in": red, "by": red}]), "by its column too");
    let rows = world.get(&format!("/stock?select=thing,boxes!things_box_id_fkey(name){first}")).expect(200).await?;
    assert_eq!(rows, json!([{"thing": 1, "boxes": red}]), "and by the table's foreign key");
    // Through views, subqueries and common table expressions, and a materialized view.
    let rows = world.get(&format!("/deep?select=thing,boxes(name){first}")).expect(200).await?;
    assert_eq!(rows, json!([{"thing": 1, "boxes": red}]));
    let rows = world.get("/piled?select=id,boxes(name)&id=eq.1").expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "boxes": red}]));
    // What is related to a thing is related to a view of things.
    let rows = world.get("/stock?select=thing,labels(text)&thing=lte.2&order=thing").expect(200).await?;
    assert_eq!(rows, json!([{"thing": 1, "labels": {"text": "keep dry"}}, {"thing": 2, "labels": null}]));
    Ok(())
}

#[tokio::test]
async fn a_table_has_the_rows_of_views_too() -> Result<()> {
    let world = with_views().await?;
    let rows = world.get("/boxes?select=name,stock(thing)&stock.order=thing&order=id").expect(200).await?;
    assert_eq!(rows, json!([{"name": "red", "stock": [{"thing": 1}, {"thing": 2}]}, {"name": "blue", "stock": []}]));
    let rows = world.get("/boxes?select=name,stock!inner(thing)&stock.title=eq.ANVIL").expect(200).await?;
    assert_eq!(rows, json!([{"name": "red", "stock": [{"thing": 1}]}]));
    let rows = world.get("/things?select=id,red_boxes!box_id(number),spare:red_boxes!spare_id(number)&id=eq.1").expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "red_boxes": {"number": 1}, "spare": null}]));
    let rows = world.get("/stock?select=thing,red_boxes(name)&thing=eq.1").expect(200).await?;
    assert_eq!(rows, json!([{"thing": 1, "red_boxes": {"name": "red"}}]), "from view to view");
    let rows = world.get("/things?select=id,notes(text)&id=eq.1").expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "notes": {"text": "keep dry"}}]), "at most one: an object");
    let rows = world.get("/things?select=id,doubled!box_id(name)&id=eq.1").expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "doubled": {"name": "red"}}]), "one row, however often the view shows it");
    // Tables of the same name work as before: no view is used instead.
    let rows = world.get("/things?select=id,box_id(name)&id=eq.1").expect(200).await?;
    assert_eq!(rows, json!([{"id": 1, "box_id": {"name": "red"}}]));
    Ok(())
}

#[tokio::test]
async fn a_column_that_a_view_reckons_belongs_nowhere() -> Result<()> {
    let world = with_views().await?;
    for view in ["reckoned", "both_ways"] {
        let (code, message) = world.get(&format!("/{view}?select=id,boxes(name)")).refused(400).await?;
        assert_eq!((code.as_str(), message.contains(&format!("between '{view}' and 'boxes'"))), ("PGRST200", true), "{message}");
    }
    let answer = world.get("/big_things?select=id,boxes(name)").send().await?;
    assert_eq!((answer.status.as_u16(), &answer.error()["code"]), (300, &json!("PGRST201")), "two keys, as with the table");
    Ok(())
}

#[tokio::test]
async fn views_are_related_by_tables_that_are_not_exposed() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create schema vault;
             create table vault.people (id bigint primary key, name text);
             create table vault.cars (id bigint primary key, plate text, owner bigint references vault.people (id));
             create table vault.drivers (person bigint references vault.people (id), car bigint references vault.cars (id), primary key (person, car));
             insert into vault.people values (1, 'Ada'), (2, 'Bob');
             insert into vault.cars values (1, 'A 1', 1);
             insert into vault.drivers values (2, 1);
             create view people as select * from vault.people;
             create view cars as select id, plate, owner as held_by from vault.cars;
             create view drivers as select * from vault.drivers;
             grant select on people, cars, drivers to anon",
        )
        .await?;
    let rows = world.get("/cars?select=plate,held_by(name)").anon().send().await?;
    assert_eq!((rows.status.as_u16(), &rows.error()["code"]), (400, &json!("PGRST200")), "a column leads to tables only");
    let rows = world.get("/cars?select=plate,people!held_by(name),drivers:people!drivers(name)").anon().expect(200).await?;
    assert_eq!(rows, json!([{"plate": "A 1", "people": {"name": "Ada"}, "drivers": [{"name": "Bob"}]}]));
    Ok(())
}

/// Whether a view shows what its owner may see or what the caller may see is decided by the view. Embedded rows are read
/// with the caller's rights.
#[tokio::test]
async fn rows_that_belong_to_a_view_obey_row_security() -> Result<()> {
    let world = with_views().await?;
    world
        .run(
            "alter table boxes enable row level security; create policy blue on boxes to anon using (name = 'blue');
             create view my_boxes with (security_invoker) as select id, name from boxes;
             grant select on my_boxes to anon",
        )
        .await?;
    let one = |embedded: &str| world.get(&format!("/stock?select={embedded}&thing=eq.1")).anon();
    assert_eq!(one("boxes(name)").expect(200).await?, json!([{"boxes": null}]));
    assert_eq!(one("my_boxes(name)").expect(200).await?, json!([{"my_boxes": null}]));
    world.run("revoke all on boxes from anon").await?;
    assert_eq!(one("boxes(name)").refused(401).await?.0, "42501");
    Ok(())
}

/// A foreign key within one table is followed up by its column and down by a hint.
#[tokio::test]
async fn a_table_belongs_to_itself_both_ways() -> Result<()> {
    let world = world().await?.with_things().await?;
    let rows = world.get("/boxes?select=name,kept_in(name),holds:boxes!kept_in(name)&order=id").expect(200).await?;
    assert_eq!(
        rows,
        json!([{"name": "red", "kept_in": null, "holds": [{"name": "blue"}]}, {"name": "blue", "kept_in": {"name": "red"}, "holds": []}])
    );
    Ok(())
}
