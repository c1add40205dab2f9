//! `gleaner migrate --supabase`: exposes schema `gleaner` to PostgREST, next to the schemas it exposes already.

use anyhow::{Result, bail};
use gleaner::Error;
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::App;

/// The schemas in the role's settings now, else those a project exposes by default.
const SHOWN: &str = "
    select coalesce(
        (select split_part(c, '=', 2) from pg_db_role_setting s cross join unnest(s.setconfig) c
         where s.setrole = r.oid and s.setdatabase in (0, (select oid from pg_database where datname = current_database()))
           and c like 'pgrst.db_schemas=%' order by s.setdatabase desc limit 1),
        'public' || case when to_regnamespace('graphql_public') is not null then ', graphql_public' else '' end)
    from pg_roles r where r.rolname = 'authenticator'";

pub(super) async fn expose(app: &App, client: &Client) -> Result<Value> {
    let rows = client.query_typed(SHOWN, &[]).await.map_err(Error::doing("ask which schemas PostgREST shows"))?;
    let Some(row) = rows.first() else {
        bail!("this is no Supabase project: there is no role authenticator\n  Leave --supabase out; everything else is migrated");
    };
    let mut schemas: Vec<String> = row.get::<_, String>(0).split(',').map(|s| s.trim().trim_matches('"').to_owned()).collect();
    if !schemas.iter().any(|schema| schema == "gleaner") {
        schemas.push("gleaner".into());
        let list = schemas.join(", ");
        client
            .batch_execute(&format!("alter role authenticator set pgrst.db_schemas = '{}'", list.replace('\'', "''")))
            .await
            .map_err(Error::doing("show schema gleaner to PostgREST (as a project's owner, or in its dashboard under API settings)"))?;
    }
    client
        .batch_execute("notify pgrst, 'reload config'; notify pgrst, 'reload schema'")
        .await
        .map_err(Error::doing("notify PostgREST to reload its schema"))?;
    app.out.line(format!("PostgREST shows: {}. Call acts with the profile header gleaner.", schemas.join(", ")));
    Ok(json!({"schemas": schemas}))
}
