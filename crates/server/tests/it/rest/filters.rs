//! Operators, negation and logic.

use anyhow::Result;
use serde_json::Value;

use crate::rest::world::{World, world};

async fn ids(world: &World, filter: &str) -> Result<Vec<i64>> {
    let rows = world.get(&format!("/things?select=id&order=id&{filter}")).expect(200).await?;
    Ok(rows.as_array().into_iter().flatten().filter_map(|row| row["id"].as_i64()).collect())
}

#[tokio::test]
async fn every_operator_compares_in_the_type_of_its_column() -> Result<()> {
    let world = world().await?.with_things().await?;
    let cases: &[(&str, &[i64])] = &[
        ("id=eq.1", &[1]),
        ("name=eq.US+Support+%2B1", &[3]),
        ("name=eq.US%20Support%20%2B1", &[3]),
        ("name=neq.anvil", &[2, 3]),
        ("size=gt.10", &[1]),
        ("size=gte.10", &[1, 2]),
        ("size=lt.100", &[2]),
        ("size=lte.100", &[1, 2]),
        ("size=gt.5&size=lt.50", &[2]),
        ("name=eq.null", &[]),
        ("size=is.null", &[3]),
        ("size=is.not_null", &[1, 2]),
        ("fragile=is.true", &[2]),
        ("fragile=is.false", &[1]),
        ("fragile=is.unknown", &[3]),
        ("fragile=not.is.true", &[1, 3]),
        ("fragile=is.NULL", &[3]),
        ("id=in.(1,3)", &[1, 3]),
        ("id=in.()", &[]),
        ("name=in.(\"US Support %2B1\",anvil)", &[1, 3]),
        ("mood=in.(calm,wild)", &[1, 2]),
        ("mood=eq.wild", &[2]),
        ("name=like.*l*", &[1, 2]),
        ("name=like.%25l%25", &[1, 2]),
        ("name=ilike.ANV*", &[1]),
        ("name=match.^a", &[1]),
        ("name=imatch.^US", &[3]),
        ("size=isdistinct.10", &[1, 3]),
        ("tags=cs.{heavy}", &[1]),
        ("tags=cs.{\"a,b\"}", &[2]),
        ("tags=cd.{heavy,iron,rust}", &[1]),
        ("tags=ov.{light,iron}", &[1, 2]),
        ("tags=in.(\"{heavy,iron}\")", &[1]),
        ("data=cs.{\"a\":{\"b\":1}}", &[1]),
        ("data=cd.{\"a\":{\"b\":2},\"word\":\"y, z\",\"more\":1}", &[2]),
        ("data->>word=eq.y,%20z", &[2]),
        ("data->a->b=eq.2", &[2]),
        ("data->a->>b=eq.1", &[1]),
        ("data->list->>0=eq.10", &[1]),
        ("data->list->>-1=eq.20", &[1]),
        ("name=not.eq.anvil", &[2, 3]),
        ("id=not.in.(1,2)", &[3]),
        ("made_at=gte.2025-01-16T00:00:00Z", &[3]),
        ("code=not.is.null", &[1, 2, 3]),
    ];
    for (filter, expected) in cases {
        assert_eq!(ids(&world, filter).await?, *expected, "{filter}");
    }
    Ok(())
}

#[tokio::test]
async fn logic_nests() -> Result<()> {
    let world = world().await?.with_things().await?;
    let cases: &[(&str, &[i64])] = &[
        ("or=(id.eq.1,id.eq.3)", &[1, 3]),
        ("and=(id.gte.2,name.like.b*)", &[2]),
        ("not.or=(id.eq.1,id.eq.3)", &[2]),
        ("not.and=(id.gte.2,id.lte.3)", &[1]),
        ("or=(and(id.gt.1,id.lt.3),name.eq.\"US Support %2B1\")", &[2, 3]),
        ("or=(id.eq.1,not.and(id.gt.0,id.lt.3))", &[1, 3]),
        ("or=(id.in.(1,2),size.is.null)", &[1, 2, 3]),
        ("or=(tags.cs.{heavy,iron},id.eq.2)", &[1, 2]),
        ("or=(data->>word.eq.\"y, z\",data->a->b.eq.1)", &[1, 2]),
        ("or=(size.not.is.null,id.eq.99)", &[1, 2]),
        ("or=( id.eq.1 , id.eq.3)&id=gt.1", &[3]),
        ("or=(id.eq.1,id.eq.2)&or=(id.eq.2,id.eq.3)", &[2]),
    ];
    for (filter, expected) in cases {
        assert_eq!(ids(&world, &filter.replace(' ', "%20")).await?, *expected, "{filter}");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_not_understood_is_said_so() -> Result<()> {
    let world = world().await?.with_things().await?;
    let answer = world.get("/things?id=bogus.1").send().await?;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.error()["message"], "\"failed to parse filter (bogus.1)\" (line 1, column 1)");
    assert_eq!(answer.error()["details"], "unexpected \"b\" expecting \"not\" or operator (eq, gt, ...)");
    for query in [
        "id=1",
        "id=",
        "id=eq",
        "id=not.1",
        "id=is.maybe",
        "id=in.1",
        "id=in.(1",
        "or=id.eq.1",
        "or=(id.eq.1",
        "or=()",
        "or=(id)",
        "or=(id.eq.1)x",
        "select=id,,name",
        "select=id(",
        "select=*)",
        "select=data->>a->b",
        "order=id.up",
        "order=,",
        "columns=,",
        "name=neq(any).{a}",
        "order=boxes(name",
        "select=...(name)",
        "data->=eq.1",
        "=eq.1",
        "select=\"id",
        "offset=x",
    ] {
        let (code, _) = world.get(&format!("/things?{query}")).refused(400).await?;
        assert_eq!(code, "PGRST100", "{query}");
    }
    for query in ["select=count()", "select=size.sum()"] {
        assert_eq!(world.get(&format!("/things?{query}")).refused(400).await?.0, "PGRST123", "{query}");
    }
    Ok(())
}

#[tokio::test]
async fn nesting_has_an_end() -> Result<()> {
    let world = world().await?.with_things().await?;
    let deep = format!("{}id.eq.1{}", "and(".repeat(5000), ")".repeat(5000));
    assert_eq!(world.get(&format!("/things?or=({deep})")).refused(400).await?.0, "PGRST100");
    let deep = format!("{}id{}", "boxes(".repeat(5000), ")".repeat(5000));
    assert_eq!(world.get(&format!("/things?select={deep}")).refused(400).await?.0, "PGRST100");
    Ok(())
}

/// Client programs use a timestamp as a version: a value that was read must match when it is sent back.
#[tokio::test]
async fn a_timestamp_that_was_read_finds_its_row() -> Result<()> {
    let world = world().await?.with_things().await?;
    world.run("set timezone = 'Asia/Tokyo'; insert into things (name, made_at) values ('now', clock_timestamp())").await?;
    let rows = world.get("/things?select=id,made_at").expect(200).await?;
    for row in rows.as_array().into_iter().flatten() {
        let Value::String(made_at) = &row["made_at"] else { panic!("{row}") };
        let found = ids(&world, &format!("made_at=eq.{}", made_at.replace('+', "%2B"))).await?;
        assert_eq!(found, [row["id"].as_i64().unwrap()], "{made_at}");
    }
    Ok(())
}
