//! Dumps are told to the members of their workspace, and to nobody else.

use anyhow::Result;
use serde_json::json;

use crate::realtime::client::{service, stage, user};

#[tokio::test]
async fn the_progress_of_a_dump_is_sent_only_to_members_of_its_workspace() -> Result<()> {
    let stage = stage().await?;
    let (ann, bob) = (stage.person("ann", true).await?, stage.person("bob", true).await?);
    for person in [&ann, &bob] {
        let sql = "with w as (insert into workspaces (name) values ('PERSON') returning id),
                        m as (insert into workspace_members (workspace_id, user_id) select id, 'PERSON' from w)
                   insert into baskets (workspace_id, name) select id, 'PERSON' from w";
        stage.run(&sql.replace("PERSON", person)).await?;
    }
    let bindings = json!([{"event": "*", "schema": "public", "table": "agent_processing_queue"}]);
    let mut sockets = Vec::new();
    for token in [user(&ann), user(&bob), service()] {
        let mut socket = stage.connect(&token).await?;
        socket.follow("feed", bindings.clone()).await?;
        sockets.push(socket);
    }
    let capture = |person: &str| format!("insert into raw_dumps (basket_id, body_md) select id, 'x' from baskets where name = '{person}'");
    stage.run(&capture(&ann)).await?;
    stage.run(&capture(&bob)).await?;
    let basket = |person: &str| format!("select id::text from baskets where name = '{person}'");
    let (of_ann, of_bob) = (stage.value(&basket(&ann)).await?, stage.value(&basket(&bob)).await?);
    let [hers, his, all] = &mut sockets[..] else { unreachable!() };
    assert_eq!(hers.change().await?["record"]["basket_id"], json!(of_ann));
    assert_eq!(his.change().await?["record"]["basket_id"], json!(of_bob), "the first he hears of is his own");
    assert_eq!(all.change().await?["record"]["basket_id"], json!(of_ann));
    hers.expect_nothing().await
}
