//! Full text search, and comparisons with any or all elements of a list.

use anyhow::Result;
use serde_json::json;

use crate::rest::world::world;

#[tokio::test]
async fn a_column_is_compared_with_any_or_all_elements_of_a_list() -> Result<()> {
    let world = world().await?.with_things().await?;
    for (filter, ids) in [
        ("name=like(any).{an*,bal*}", json!([{"id": 1}, {"id": 2}])),
        ("name=like(all).{*a*,*n*}", json!([{"id": 1}, {"id": 2}])),
        ("name=ilike(any).{ANV*,us*}", json!([{"id": 1}, {"id": 3}])),
        ("name=not.like(any).{an*,bal*}", json!([{"id": 3}])),
        ("name=match(any).{^an,oon$}", json!([{"id": 1}, {"id": 2}])),
        ("id=eq(any).{1,3}", json!([{"id": 1}, {"id": 3}])),
        ("id=gte(all).{1,2}", json!([{"id": 2}, {"id": 3}])),
        ("or=(id.lt(all).{2,3},name.like(any).{US*})", json!([{"id": 1}, {"id": 3}])),
    ] {
        let filter = filter.replace('{', "%7B").replace('}', "%7D").replace('^', "%5E");
        assert_eq!(world.get(&format!("/things?select=id&order=id&{filter}")).expect(200).await?, ids, "{filter}");
    }
    for refused in ["name=neq(any).x", "name=like(some).x", "tags=cs(any).x", "id=in(any).(1)"] {
        assert_eq!(world.get(&format!("/things?{refused}")).refused(400).await?.0, "PGRST100", "{refused}");
    }
    assert_eq!(world.get("/things?id=eq(any).1").refused(400).await?.0, "22P02", "a list is written as an array");
    Ok(())
}

#[tokio::test]
async fn words_are_searched_in_texts_json_and_search_vectors() -> Result<()> {
    let world = world().await?;
    world
        .run(
            "create table notes (id int primary key, body text, data jsonb, words tsvector generated always as (to_tsvector('english', body)) stored);
             insert into notes (id, body, data) values
                 (1, 'The fat cats ate the rats', '{\"said\": \"the cats sleep\"}'), (2, 'It is fun to do the impossible', null);
             grant select on notes to anon, service_role",
        )
        .await?;
    for (filter, id) in [
        ("body=fts(english).cat%26rat", 1),
        ("body=plfts(english).cats rats", 1),
        ("body=phfts(english).fat cats", 1),
        ("body=wfts(english).fun -possible", 2),
        ("words=fts(english).impossible", 2),
        ("data=fts(english).sleep", 1),
        ("body=not.fts(english).fun", 1),
        ("or=(words.plfts(english).fun,id.eq.99)", 2),
    ] {
        assert_eq!(world.get(&format!("/notes?select=id&{filter}")).anon().expect(200).await?, json!([{"id": id}]), "{filter}");
    }
    assert_eq!(world.get("/notes?select=id&body=fts.cats").expect(200).await?, json!([{"id": 1}]), "in the database's own language");
    assert_eq!(world.get("/notes?body=fts(klingon).x").refused(400).await?.0, "42704");
    assert_eq!(world.get("/notes?body=fts(english).a%20%26%26").refused(400).await?.0, "42601");
    Ok(())
}
